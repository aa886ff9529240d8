import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { type FlagTable, parseFlags } from '@plat/config'
import { calleeOf, lineAt, type Node, nodesOf, readSource, type Source } from './source.ts'

/** A text that people read, with its place. */
interface Prose {
  readonly path: string
  readonly line: number
  readonly text: string
}

/** How many of each kind the reading test draws. */
const DRAWN = [
  { kind: 'comments', count: 40 },
  { kind: 'errors', count: 20 },
  { kind: 'log lines', count: 20 },
  { kind: 'test names', count: 20 },
] as const

type Kind = (typeof DRAWN)[number]['kind']

/** Callees whose first argument is a log line or the name of a test. */
const LOGS = /(?:^|\.)(?:log|logger)\.(?:debug|info|warn|error)$/
const TESTS = /^(?:test|it|check|t\.test)$/

/** Texts shorter than this say nothing that could be misread. */
const SHORTEST = 15

const flags = {
  seed: { type: 'int', default: 1, help: 'the drawing: the same seed draws the same texts of the same tree' },
} as const satisfies FlagTable

function proseOf(source: Source, kind: Kind): readonly Prose[] {
  const at = (text: string, start: number): Prose => ({ path: source.path, line: lineAt(source.text, start), text })
  if (kind === 'comments')
    return source.comments.map(({ value, start }) => at(value.replace(/\s*\n\s*\*?\s*/g, ' ').trim(), start))
  const nodes = kind === 'errors' ? nodesOf(source, 'NewExpression') : nodesOf(source, 'CallExpression')
  const callee = { errors: /Error$/, 'log lines': LOGS, 'test names': TESTS }[kind]
  return nodes.filter((node) => callee.test(calleeOf(node))).flatMap((node) => firstText(source, node, at))
}

/** The first argument that is a text, as it is written. */
function firstText(source: Source, node: Node, at: (text: string, start: number) => Prose): readonly Prose[] {
  if (!Array.isArray(node.arguments)) return []
  const text = node.arguments.find(({ type, value }) => type === 'TemplateLiteral' || typeof value === 'string')
  return text === undefined ? [] : [at(source.text.slice(text.start + 1, text.end - 1), text.start)]
}

/** A generator of numbers below 1 that the seed decides (a linear congruential generator). */
function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function drawn(pool: readonly Prose[], count: number, random: () => number): readonly Prose[] {
  const left = [...pool]
  return Array.from({ length: Math.min(count, left.length) }, () => left.splice(Math.floor(random() * left.length), 1))
    .flat()
    .toSorted((a, b) => a.path.localeCompare(b.path) || a.line - b.line)
}

/** `node tools/tidy/sample.ts`: texts of the tree for the reading test of STYLE.md. */
function main(args: readonly string[]): number {
  const parsed = parseFlags(flags, args, 'node tools/tidy/sample.ts')
  if (!parsed.ok) {
    console.error(parsed.help ? parsed.usage : `${parsed.message}\n\n${parsed.usage}`)
    return parsed.help ? 0 : 2
  }
  const root = path.resolve(import.meta.dirname, '../..')
  const files = execFileSync('git', ['ls-files', '*.ts'], { cwd: root, encoding: 'utf8' }).trim().split('\n')
  const sources = files.map((file) => readSource(file, readFileSync(path.join(root, file), 'utf8')))
  const random = seeded(parsed.values.seed)
  for (const { kind, count } of DRAWN) {
    const pool = sources
      .filter(({ isTest }) => (kind === 'test names') === isTest || kind === 'comments')
      .flatMap((source) => proseOf(source, kind))
      .filter(({ text }) => text.length >= SHORTEST)
    console.log(`\n${kind} (${count} of ${pool.length})`)
    for (const { path: file, line, text } of drawn(pool, count, random)) console.log(`${file}:${line}: ${text}`)
  }
  return 0
}

process.exitCode = main(process.argv.slice(2))
