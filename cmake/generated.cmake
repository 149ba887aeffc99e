# CLIP's merge table: the assembler takes it in as it is (src/text/merges.c).
set(ST_MERGES ${CMAKE_CURRENT_SOURCE_DIR}/src/text/merges.bin)
set_source_files_properties(src/text/merges.c PROPERTIES
  COMPILE_DEFINITIONS "ST_MERGES_FILE=\"${ST_MERGES}\"" OBJECT_DEPENDS "${ST_MERGES}")
