# Outside parts; what each costs is in docs/dependencies.md.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(JPEG REQUIRED IMPORTED_TARGET libjpeg)
pkg_check_modules(PNG REQUIRED IMPORTED_TARGET libpng)
pkg_check_modules(WEBP REQUIRED IMPORTED_TARGET libwebp libwebpdemux)
pkg_check_modules(TIFF REQUIRED IMPORTED_TARGET libtiff-4>=4.5) # per-handle error handlers and allocation caps
pkg_check_modules(EXIF REQUIRED IMPORTED_TARGET libexif)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(ZLIB REQUIRED IMPORTED_TARGET zlib)
pkg_check_modules(NETTLE REQUIRED IMPORTED_TARGET nettle)
pkg_check_modules(HEIF IMPORTED_TARGET libheif>=1.15) # optional
set(ST_LIBS PkgConfig::JPEG PkgConfig::PNG PkgConfig::WEBP PkgConfig::TIFF PkgConfig::EXIF PkgConfig::UTF8PROC PkgConfig::JANSSON PkgConfig::ZLIB
            PkgConfig::NETTLE Threads::Threads m)
set(ST_DEFS "")
if(HEIF_FOUND)
  list(APPEND ST_LIBS PkgConfig::HEIF)
  list(APPEND ST_DEFS ST_HAVE_HEIF=1)
endif()

set(ST_X86 OFF)
set(ST_ARM OFF)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set(ST_X86 ON)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(ST_ARM ON)
endif()
