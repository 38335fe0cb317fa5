"""Settings of Sphinx for the site. `tools/build_site.py` puts the pages together and runs it."""

from penstock import __version__

project = "Penstock"
author = "The Penstock authors"
version = release = __version__
html_title = f"Penstock {__version__}"
html_theme = "furo"
html_show_copyright = False
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tables.css"]

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]

# Pages are written for readers of the files as well: headings are targets, links name files.
myst_heading_anchors = 4
myst_fence_as_directive: list[str] = []
# A page may begin below the first level, and code blocks carry remarks for the tests that run them.
suppress_warnings = ["myst.header", "misc.highlighting_failure", "toc.not_included"]

# Docstrings write code in single backticks.
default_role = "code"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_default_options = {
    "members": True,
    "inherited-members": "object,int,str,tuple,dict,BaseException,Enum,TypedDict,Generic,Protocol",
}
python_maximum_signature_line_length = 88
nitpicky = False
