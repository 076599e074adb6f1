#pragma once
/// Turns symptoms into findings: whose fault each is, and in which words it is said. Both stand in
/// the chapter.
#include <set>
#include <vector>

#include "course/course.hpp"
#include "judge/symptom.hpp"

namespace checker {

/// The TODO that the chapter's blame table names for the first of these entries that is about this
/// step, else for the first of all. Of several TODOs of an entry one that is untouched is passed
/// over: its code is ours. Throws Error for an entry that the table does not have.
int blamed(const Course& course, const Step& step, const std::vector<std::string>& entries,
           const std::set<int>& untouched = {});

/// Throws Error, with file and line, where the chapter's words lack what the symptom needs.
Finding tell(const Course& course, const Step& step, const Symptom& symptom,
             const std::set<int>& untouched = {});
/// Where one of them says that a TODO is not started, the others are not this TODO's fault, if
/// another may be.
std::vector<Finding> tell(const Course& course, const Step& step, const Symptoms& symptoms,
                          const std::set<int>& untouched = {});

}  // namespace checker
