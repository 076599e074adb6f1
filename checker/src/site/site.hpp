#pragma once
/// The site file, sbatch/site.conf: what differs from cluster to cluster.
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace checker {

using Site = std::map<std::string, std::string>;

/// Reads "key = value" lines; empty lines and lines that begin with # say nothing. Throws Error
/// "file:line: what" for anything but the keys account, partition, qos, reservation, modules and
/// interface, and for a key given twice.
Site parse_site(std::string_view text, const std::string& file);

/// The settings as sbatch's variables: "SBATCH_ACCOUNT=...".
std::vector<std::string> site_variables(const Site& site);

/// The lines for a shell that make sbatch use the site's settings: export SBATCH_ACCOUNT='...'.
std::string site_exports(const Site& site);

}  // namespace checker
