import { LIMITS, MAY_ASSERT } from '../limits.ts'
import {
  calleeOf,
  type Finding,
  findingAt,
  isNode,
  lineAt,
  type Node,
  nodesOf,
  type Rule,
  type Source,
} from '../source.ts'

const FUNCTIONS = ['FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression']

/** A file that does not fit on a few screens holds more than one thing. */
export const fileLines: Rule = (source) => {
  const lines = source.text.split('\n').length - (source.text.endsWith('\n') ? 1 : 0)
  if (source.isTable || lines <= LIMITS.fileLines) return []
  const message = `${lines} lines, at most ${LIMITS.fileLines}: split it by what it does, or mark data with @table in its first comment`
  return [{ path: source.path, line: LIMITS.fileLines + 1, rule: 'file-lines', message }]
}

/** A function is read in one go. */
export const functionLines: Rule = (source) =>
  functions(source)
    .filter(({ lines }) => lines > LIMITS.functionLines)
    .map(({ node, lines }) =>
      findingAt(
        source,
        node.start,
        'function-lines',
        `${lines} lines, at most ${LIMITS.functionLines}: name its steps`,
      ),
    )

/** With more than four parameters, callers confuse their order. */
export const parameters: Rule = (source) =>
  functions(source)
    .filter(({ node }) => Array.isArray(node.params) && node.params.length > LIMITS.parameters)
    .map(({ node }) =>
      findingAt(source, node.start, 'parameters', `more than ${LIMITS.parameters} parameters: take one options object`),
    )

/** Comments that disable the type checker. */
export const escapes: Rule = (source) => [
  ...nodesOf(source, 'TSAnyKeyword').map((node) =>
    findingAt(source, node.start, 'any', 'any: say unknown and narrow it'),
  ),
  ...nodesOf(source, 'TSNonNullExpression').map((node) =>
    findingAt(source, node.start, 'non-null', 'a non-null `!`: handle the absent case'),
  ),
  ...source.comments
    .filter(({ value }) => /@ts-(?:ignore|nocheck)/.test(value))
    .map(({ start }) => findingAt(source, start, 'ts-ignore', 'the checker is switched off: mend the type')),
]

/** `as` says what the checker cannot see; only reviewed decoders and the runner may. */
export const assertions: Rule = (source) =>
  MAY_ASSERT.has(source.path)
    ? []
    : assertionsOf(source).map((node) =>
        findingAt(source, node.start, 'as', '`as`: narrow with a guard, `in` or Value.Check, or use `satisfies`'),
      )

/** A default export has no name to search for. */
export const defaultExports: Rule = (source) =>
  nodesOf(source, 'ExportDefaultDeclaration').map((node) =>
    findingAt(source, node.start, 'default-export', 'a default export: export it by name'),
  )

/** A class that is thrown, or that extends an error, has a name that ends in `Error`. */
export const errorNames: Rule = (source) => [
  ...nodesOf(source, 'ClassDeclaration')
    .filter((node) => nameOf(node.superClass).endsWith('Error') && !nameOf(node.id).endsWith('Error'))
    .map((node) =>
      findingAt(source, node.start, 'error-name', `${nameOf(node.id)}: end the name of an error class in Error`),
    ),
  ...nodesOf(source, 'ThrowStatement')
    .map(({ argument }) => argument)
    .filter(isNode)
    .filter((node) => node.type === 'NewExpression' && !calleeOf(node).endsWith('Error'))
    .map((node) => findingAt(source, node.start, 'error-name', `throws ${calleeOf(node)}: throw a class named …Error`)),
]

function nameOf(node: unknown): string {
  return isNode(node) && typeof node.name === 'string' ? node.name : ''
}

/** Every `as` but `as const`. */
export function assertionsOf(source: Source): readonly Node[] {
  return nodesOf(source, 'TSAsExpression', 'TSTypeAssertion').filter((node) => {
    const type = node.typeAnnotation
    return !(isNode(type) && source.text.slice(type.start, type.end) === 'const')
  })
}

/** Every function with its length. The body of a `describe` is a list of tests, not steps to be read in one go. */
export function functions(source: Source): readonly { readonly node: Node; readonly lines: number }[] {
  const groups = new Set(
    nodesOf(source, 'CallExpression')
      .flatMap((call) => (isDescribe(call) ? [call.arguments] : []))
      .flat(),
  )
  return nodesOf(source, ...FUNCTIONS)
    .filter((node) => !groups.has(node))
    .map((node) => ({ node, lines: lineAt(source.text, node.end) - lineAt(source.text, node.start) + 1 }))
}

function isDescribe(call: Node): boolean {
  const { callee } = call
  return isNode(callee) && callee.type === 'Identifier' && callee.name === 'describe'
}

/** The 90th percentile of function lengths. */
export function usualLength(sources: readonly Source[]): readonly Finding[] {
  const lengths = sources
    .filter(({ isTest }) => !isTest)
    .flatMap((source) => functions(source).map(({ lines }) => lines))
  lengths.sort((a, b) => a - b)
  const usual = lengths[Math.ceil(lengths.length * 0.9) - 1] ?? 0
  if (usual <= LIMITS.usualFunctionLines) return []
  const message = `nine of ten functions take ${usual} lines, at most ${LIMITS.usualFunctionLines}: name the steps of long ones`
  return [{ path: '.', line: 1, rule: 'function-lines', message }]
}

/** How often the whole tree says `as`. */
export function assertionShare(sources: readonly Source[]): readonly Finding[] {
  const lines = sources.reduce((sum, { text }) => sum + text.split('\n').length, 0)
  const count = sources.reduce((sum, source) => sum + assertionsOf(source).length, 0)
  if (count * 1000 <= lines * LIMITS.assertionsPer1000Lines) return []
  const message = `${count} times \`as\` in ${lines} lines, at most ${LIMITS.assertionsPer1000Lines} in 1,000`
  return [{ path: '.', line: 1, rule: 'as', message }]
}
