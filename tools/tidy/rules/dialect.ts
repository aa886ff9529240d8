import { type Finding, findingAt, isNode, type Node, nodesOf, type Rule, type Source } from '../source.ts'

/** Expressions that a reader has to translate, with plain ones. `docs/glossary.md` has the word for each concept. */
const BANNED: readonly (readonly [words: RegExp, instead: string])[] = [
  [/\b(?:tells?|told|telling)\b/i, 'return, report, send, notify, say'],
  [
    /\b(?:asks?|asked|asking)\b(?! (?:a|the|one|its|their|another|\d+) (?:person|people|user|human|approver)s?\b)/i,
    'request, query, require, call',
  ],
  [/\b(?:whom|who(?:so)?ever)\b/i, 'the subject by name: the client, each agent that, anyone who'],
  [/\b(?:nobody|everybody)\b/i, 'no client, no one, every agent'],
  [/\b(?:hears?|heard|hearing)\b/i, 'is called, is notified, receives'],
  [/\b(?:stands|stood)\b(?! for)/i, 'is stored, is, applies'],
  [/\bof (?:its|their|his|her) own\b/i, 'own, separate'],
  [/\bno such that\b/i, 'none that'],
  [/\bdocuments? [123]\b/i, 'the page of docs/spec/'],
]

/** Names that do not say what a value is. `taken` is fine: of a port, of a name. */
const VAGUE_NAMES: ReadonlySet<string> = new Set([
  'answered',
  'asked',
  'heard',
  'kept',
  'nobody',
  'said',
  'shown',
  'spoken',
  'told',
])

/** Files that quote such words, each with what it quotes. */
const EXCUSED: ReadonlyMap<string, string> = new Map([
  ['packages/state/postgres/tables/version1.ts', 'a released migration, which never changes'],
  ['services/gateway/content/dlp/scan/scanner.test.ts', 'identifiers that look like keys'],
  ['services/gateway/content/guards/review.test.ts', 'a prompt injection'],
  ['services/gateway/content/guards/texts.test.ts', 'a prompt injection'],
])

/** Names of AMD's keys: ARK, ASK, ASVK. */
const KEY_NAMES = /\bASK\b/g

/** A comment that begins so describes a thing by a clause instead of a noun. */
const CLAUSE = /^[\s*]*(?:What|Who|Whom|Whoever) (?!to\b)/

/** Returns what is wrong with a text, or null. */
export function dialectProblem(text: string): string | null {
  const prose = text.replace(KEY_NAMES, '')
  for (const [words, instead] of BANNED) {
    const found = words.exec(prose)
    if (found !== null) return `"${found[0]}": write ${instead}`
  }
  return null
}

/** Comments, messages and names of tests are plain technical English. */
export const dialect: Rule = (source) => {
  if (EXCUSED.has(source.path)) return []
  const findings: Finding[] = []
  const check = (text: string, start: number) => {
    const problem = dialectProblem(text)
    if (problem !== null) findings.push(findingAt(source, start, 'dialect', problem))
  }
  for (const { value, start } of source.comments) {
    check(value, start)
    if (CLAUSE.test(value))
      findings.push(findingAt(source, start, 'dialect', 'begins with a clause: begin with a noun'))
  }
  for (const { value, start } of nodesOf(source, 'Literal'))
    if (typeof value === 'string' && value.includes(' ')) check(value, start)
  for (const { value, start } of nodesOf(source, 'TemplateElement')) check(rawOf(value), start)
  return findings
}

/** Variables, parameters, functions and private members are named by what they are. Other members may be those of a protocol. */
export const plainNames: Rule = (source) =>
  declaredNames(source)
    .filter(({ name }) => VAGUE_NAMES.has(String(name)))
    .map(({ name, start }) => {
      const message = `${name} does not say what it is: request, response, stored, reported, displayed …`
      return findingAt(source, start, 'name', message)
    })

function declaredNames(source: Source): readonly Node[] {
  const functions = nodesOf(source, 'FunctionDeclaration', 'FunctionExpression', 'ArrowFunctionExpression')
  return [
    ...nodesOf(source, 'VariableDeclarator').flatMap(({ id }) => namesIn(id)),
    ...functions.flatMap(({ id, params }) => [
      ...namesIn(id),
      ...(Array.isArray(params) ? params.flatMap(namesIn) : []),
    ]),
    ...nodesOf(source, 'PropertyDefinition', 'MethodDefinition')
      .map(({ key }) => key)
      .filter(isNode)
      .filter(({ type }) => type === 'PrivateIdentifier'),
  ]
}

/** The names that a pattern declares: `a`, `{ b: c, ...d }`, `[e = 1]`. */
function namesIn(pattern: unknown): readonly Node[] {
  if (!isNode(pattern)) return []
  if (pattern.type === 'Identifier') return [pattern]
  const parts = [pattern.properties, pattern.elements].find(Array.isArray) ?? [
    pattern.value,
    pattern.left,
    pattern.argument,
    pattern.parameter,
  ]
  return parts.flatMap(namesIn)
}

/** Pages of the documentation are plain technical English. Code blocks are not checked: they quote programs. */
export function dialectInPage(path: string, text: string): readonly Finding[] {
  const findings: Finding[] = []
  let isCode = false
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*```/.test(line)) isCode = !isCode
    const problem = isCode ? null : dialectProblem(line)
    if (problem !== null) findings.push({ path, line: index + 1, rule: 'dialect', message: problem })
  }
  return findings
}

/** Comments, docstrings, messages and names of Python, line by line: a name counts by its words. */
export function dialectInPython(path: string, text: string): readonly Finding[] {
  return text.split('\n').flatMap((line, index) => {
    const problem = dialectProblem(line.replaceAll('_', ' '))
    return problem === null ? [] : [{ path, line: index + 1, rule: 'dialect', message: problem }]
  })
}

function rawOf(value: unknown): string {
  return typeof value === 'object' && value !== null && 'raw' in value ? String(value.raw) : ''
}
