# For Conan 2: it packs the checkout that it stands in.
#
#   conan create packaging/conan --build=missing
import os
import re

from conan import ConanFile
from conan.tools.build import check_min_cppstd
from conan.tools.cmake import CMake, CMakeDeps, CMakeToolchain, cmake_layout
from conan.tools.files import copy, load, rmdir


class DdbmutexConan(ConanFile):
    name = "ddbmutex"
    description = "A std::timed_mutex for all hosts, held as one DynamoDB item"
    license = "MIT"
    topics = ("mutex", "distributed-lock", "dynamodb")
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False], "extras": [True, False]}
    default_options = {"shared": False, "extras": True}

    def _checkout(self):
        return os.path.join(self.recipe_folder, "..", "..")

    def set_version(self):
        header = load(self, os.path.join(self._checkout(), "ddbmutex.hpp"))
        self.version = re.search(r'VERSION_STRING "([^"]+)"', header).group(1)

    def export_sources(self):
        for files in ("CMakeLists.txt", "LICENSE", "ddbmutex.*", "ddbmutex/*",
                      "sigv4/*", "extras/*", "packaging/*"):
            copy(self, files, self._checkout(), self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def requirements(self):
        self.requires("libcurl/[>=7.80 <9]")
        self.requires("openssl/[>=3 <4]")
        # Only the sources include its headers, so users of this do not see it.
        self.requires("rapidjson/1.1.0", visible=False)

    def validate(self):
        check_min_cppstd(self, 17)

    def generate(self):
        CMakeDeps(self).generate()
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["BUILD_TESTING"] = False
        toolchain.cache_variables["DDBMUTEX_COMMAND"] = False
        toolchain.cache_variables["DDBMUTEX_EXTRAS"] = bool(self.options.extras)
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        # Conan writes its own.
        for folder in ("cmake", "pkgconfig"):
            rmdir(self, os.path.join(self.package_folder, "lib", folder))
        copy(self, "LICENSE", self.source_folder,
             os.path.join(self.package_folder, "licenses"))

    def package_info(self):
        self.cpp_info.libs = ["ddbmutex"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.requires = ["libcurl::libcurl", "openssl::crypto"]
        self.cpp_info.set_property("cmake_target_name", "ddbmutex::ddbmutex")
