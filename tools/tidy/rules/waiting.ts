import { type Finding, findingAt, isNode, type Node, nodesOf, type Rule, type Source } from '../source.ts'

/** The one file that looks at what a value is. */
const CHECKS_PROMISES = 'packages/core/when-ready.ts'
const PRODUCT = /^(?:packages|services|apps|sdk)\/(?!testkit\/)/

/** Steps that wait only if they must are written with one helper, so that each of them handles both cases. */
export const promiseChecks: Rule = (source) => {
  if (source.isTest || source.path === CHECKS_PROMISES || !PRODUCT.test(source.path)) return []
  return nodesOf(source, 'BinaryExpression')
    .filter(({ operator, right }) => operator === 'instanceof' && isNode(right) && right.name === 'Promise')
    .map((node) => findingAt(source, node.start, 'promise-check', 'use whenReady or isPromise of @plat/core'))
}

/** Types of the results of generators. */
const GENERATED = new Set(['Generator', 'AsyncGenerator', 'Steps'])

/** Methods of other objects with these names may be those of the language: `list.push(one)`. */
const BUILT_IN = new Set([Array, Map, Set].flatMap(({ prototype }) => Object.getOwnPropertyNames(prototype)))

/** Names of functions and methods: those that return a generator, and all others. */
interface Names {
  readonly generators: Set<string>
  readonly others: Set<string>
}

/**
 * A call of a generator runs nothing of it: as a statement it is lost without an error. `yield*` runs it. A function counts by its name, if all
 * functions of this name return generators.
 */
export function lostGenerators(sources: readonly Source[]): readonly Finding[] {
  const everywhere: Names = { generators: new Set(), others: new Set() }
  const known = sources.map((source) => ({ source, names: namesIn(source, everywhere) }))
  return known.flatMap(({ source, names }) =>
    nodesOf(source, 'ExpressionStatement').flatMap((statement) => {
      const name = calledIn(statement)
      const { generators, others } = names.generators.has(name) || names.others.has(name) ? names : everywhere
      if (!generators.has(name) || others.has(name)) return []
      return [findingAt(source, statement.start, 'lost-generator', `${name} does nothing without yield* or a loop`)]
    }),
  )
}

/** Returns the names that a source declares, and adds them to those of all sources. */
function namesIn(source: Source, everywhere: Names): Names {
  const own: Names = { generators: new Set(), others: new Set() }
  for (const [name, fn] of declared(source)) {
    const kind = returnsGenerator(fn) ? 'generators' : 'others'
    own[kind].add(name)
    everywhere[kind].add(name)
  }
  return own
}

function declared(source: Source): readonly (readonly [string, Node])[] {
  const functions = nodesOf(source, 'FunctionDeclaration', 'TSDeclareFunction').map(
    (node) => [nameOf(node.id), node] as const,
  )
  const members = nodesOf(source, 'MethodDefinition', 'PropertyDefinition', 'Property', 'VariableDeclarator').flatMap(
    ({ key, id, value, init }) => {
      const fn = value ?? init
      const isFunction = isNode(fn) && /Function/.test(fn.type)
      return isFunction ? [[nameOf(key ?? id), fn] as const] : []
    },
  )
  const signatures = nodesOf(source, 'TSMethodSignature').map((node) => [nameOf(node.key), node] as const)
  return [...functions, ...members, ...signatures].filter(([name]) => name !== '')
}

function returnsGenerator({ generator, returnType }: Node): boolean {
  if (generator === true) return true
  const type = isNode(returnType) ? returnType.typeAnnotation : null
  return isNode(type) && GENERATED.has(nameOf(type.typeName))
}

/** The name of what a statement calls; '' if it is not a call. */
function calledIn({ expression }: Node): string {
  let inner = expression
  while (isNode(inner) && (inner.type === 'AwaitExpression' || inner.type === 'UnaryExpression' || isPlainYield(inner)))
    inner = inner.argument
  if (!isNode(inner) || inner.type !== 'CallExpression' || !isNode(inner.callee)) return ''
  const { callee } = inner
  if (callee.type !== 'MemberExpression') return nameOf(callee)
  const name = nameOf(callee.property)
  const isOwn = isNode(callee.object) && callee.object.type === 'ThisExpression'
  return isOwn || !BUILT_IN.has(name) ? name : ''
}

function isPlainYield({ type, delegate }: Node): boolean {
  return type === 'YieldExpression' && delegate !== true
}

function nameOf(node: unknown): string {
  if (!isNode(node)) return ''
  if (node.type === 'PrivateIdentifier') return `#${String(node.name)}`
  return node.type === 'Identifier' ? String(node.name) : ''
}
