package graph

// TeacherPrefix stands before the path of a parameter of the teacher.
const TeacherPrefix = "teacher."
