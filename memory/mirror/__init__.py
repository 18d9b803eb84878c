"""The file mirror (SPEC 8): what a team keeps in files, read without trust and without loss.

This half is pure: bytes in, records and a report out. It knows no database.

* `tree`: where the bytes come from, a folder or a zip, and the bounds that keep both safe
* `decoding`: bytes to text, with a note on every change
* `markdown`: headings, blocks and front matter of a text
* `marks`: the marks that make our own export come back byte for byte
* `sources`: which file is which kind of memory, and which source it belongs to
* `ledgers`, `inbox`, `histories`, `focus`, `ours`: one reader for each kind of file
* `records`, `report`: what comes out
* `squad`: the whole tree
"""
