"""The commands of `kb`, one file a family. What only one of them needs is imported when it runs."""
