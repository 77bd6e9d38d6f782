"""A script without .py in its name, as a module for its test."""
import importlib.machinery
import importlib.util
import os


def script_module(path):
    """Runs the file as a module that is named like it. The same errors as an import."""
    loader = importlib.machinery.SourceFileLoader(os.path.basename(path).replace("-", "_"), path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module
