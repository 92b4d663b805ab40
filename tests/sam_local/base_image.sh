#!/usr/bin/env bash
# Makes a stand-in for AWS's Lambda image of Python 3.13, for an engine that reaches no image registry:
# Debian's Python 3.13 and Lambda's runtime client. The emulator of the runtime's interface is the
# SAM CLI's own, which `sam local` puts in by itself. AWS's image has a boto3 as well, which would
# hide that the layer lacks one.
# Needs root, debootstrap, uv and an engine (DOCKER_HOST).
# usage: base_image.sh FOLDER    where its files are kept for the next time
set -euo pipefail

folder=$1
image=public.ecr.aws/lambda/python:3.13
client_version=4.0.0
machine=$(uname -m)
case $machine in
  x86_64) name=x86_64 ;;
  aarch64 | arm64) machine=aarch64 name=arm64 ;;
  *) echo "Lambda has no machine like $machine" >&2; exit 1 ;;
esac

system=$folder/system client=$folder/client
if [ ! -e "$folder/made" ]; then
  rm -rf "$system" "$client"
  mkdir -p "$folder"
  mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null || true)
  debootstrap --variant=minbase --include=python3,ca-certificates trixie "$system" ${mirror:+"$mirror"} >&2
  uv pip install --quiet --target "$client" --python-version 3.13 \
    --python-platform "$machine-manylinux_2_28" --only-binary :all: "awslambdaric==$client_version"
  mkdir -p "$system/var/task" "$system/var/runtime" "$system/opt"
  cp -R "$client" "$system/var/runtime/python"
  # The order of AWS's own: the function, then layers, then what the image brings.
  cat >"$system/var/runtime/bootstrap" <<'SCRIPT'
#!/bin/sh
export PYTHONPATH=/var/task:/opt/python:/var/runtime/python
cd /var/task
exec /usr/bin/python3 -m awslambdaric "$_HANDLER"
SCRIPT
  chmod +x "$system/var/runtime/bootstrap"
  touch "$folder/made"
fi
tar -C "$system" -c . | docker import \
  -c 'WORKDIR /var/task' \
  -c 'ENV PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 LAMBDA_TASK_ROOT=/var/task LAMBDA_RUNTIME_DIR=/var/runtime' \
  - "$image-$name" >&2
