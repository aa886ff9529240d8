export { type CelRule, type CelVariables, compileExpression, EXPRESSION_MAX_CHARS, type Expression } from './cel.ts'
export { checkStructure, type FieldProblem, isRecord, mapOf } from './check.ts'
export { problemLine } from './decode.ts'
