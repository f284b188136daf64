"""The `lacunar` command."""

from __future__ import annotations


def main() -> int:
    from lacunar import show_config

    show_config()
    return 0
