"""Packages of npm for tests: in a folder of their own, or the one that MERIDIAN_NPM names."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CHDB = "chdb@3.4.0"  # ClickHouse 26.7 as a library


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def install(packages):
    """The folder with node_modules. Ends the test as skipped without node or where npm cannot be reached."""
    there = os.environ.get("MERIDIAN_NPM")
    if there:
        return there
    if not shutil.which("node") or not shutil.which("npm"):
        skip("node and npm are not installed")
    folder = tempfile.mkdtemp()
    unittest.addModuleCleanup(shutil.rmtree, folder, ignore_errors=True)
    (pathlib.Path(folder) / "package.json").write_text("{}")
    try:
        p = subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0", *packages], cwd=folder, timeout=400,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        skip("npm did not answer in time")
    if p.returncode:
        skip("npm cannot be reached: " + p.stdout.decode(errors="replace").strip()[-200:])
    return folder
