import { globSync, readFileSync } from 'node:fs'
import path from 'node:path'
import type { DocumentName, Requirement } from '../../test/conformance/requirements.ts'
import { calleeOf, lineAt, nodesOf, readSource, type Source } from '../tidy/source.ts'

/** A test that says which requirement it shows. */
export interface Citation {
  readonly id: string
  readonly path: string
  readonly line: number
  /** Line at which the innermost test around it begins; null outside a test, where it shows nothing. */
  readonly testLine: number | null
}

/** How much of a document tests show. */
export interface Coverage {
  readonly document: DocumentName
  readonly covered: number
  readonly of: number
  readonly missing: readonly Requirement[]
}

export const DOCUMENTS: readonly DocumentName[] = ['D1', 'D2', 'D3']

interface Paragraph {
  readonly value: string
  readonly start: number
}

const SHOWS = /^[\s*]*Shows\b/m
const ID = /\bD\d\.[\w.-]*\w/g
const TEST_CALL = /^(?:\w+\.)?(?:test|it)$/

/** Every citation in a test's source: the ids of a comment that begins with `Shows`. */
export function citationsOf(file: string, text: string): readonly Citation[] {
  if (!text.includes('Shows')) return []
  const source = readSource(file, text)
  const tests = nodesOf(source, 'CallExpression').filter((node) => TEST_CALL.test(calleeOf(node)))
  return paragraphs(source)
    .filter(({ value }) => SHOWS.test(value))
    .flatMap(({ value, start }) => {
      const test = tests.findLast((node) => node.start <= start && start < node.end)
      const testLine = test === undefined ? null : lineAt(text, test.start)
      return [...value.matchAll(ID)].map(([id]) => ({ id, path: file, line: lineAt(text, start), testLine }))
    })
}

/** The comments of a file, where line comments that follow one another are one. */
function paragraphs({ comments, text }: Source): readonly Paragraph[] {
  const joined: { value: string; start: number; end: number }[] = []
  for (const { value, start, end } of comments) {
    const last = joined.at(-1)
    if (last && text.slice(last.end, start).trim() === '') {
      last.value += `\n${value}`
      last.end = end
    } else joined.push({ value, start, end })
  }
  return joined
}

/** Every citation in the tests of the repository. */
export function collectCitations(root: string): readonly Citation[] {
  return globSync('**/*.test.ts', { cwd: root, exclude: (name) => path.basename(name) === 'node_modules' })
    .sort()
    .flatMap((file) => citationsOf(file, readFileSync(path.join(root, file), 'utf8')))
}

/** Counts, per document, the rows that some test cites. Pass the citations whose test passed to count what is shown. */
export function countShown(rows: readonly Requirement[], citations: readonly Citation[]): readonly Coverage[] {
  const cited = new Set(citations.filter(({ testLine }) => testLine !== null).map(({ id }) => id))
  return DOCUMENTS.map((document) => {
    const own = rows.filter((row) => row.document === document)
    const missing = own.filter(({ id }) => !cited.has(id))
    return { document, covered: own.length - missing.length, of: own.length, missing }
  })
}

/** Problems of the manifest and of citations in tests, one line each. */
export function citationFaults(rows: readonly Requirement[], citations: readonly Citation[]): readonly string[] {
  const known = new Set<string>()
  const faults: string[] = []
  for (const { id } of rows) {
    if (known.has(id)) faults.push(`${id}: duplicate in docs/spec`)
    known.add(id)
  }
  for (const { id, path: file, line, testLine } of citations) {
    if (!known.has(id)) faults.push(`${file}:${line} ${id}: no such requirement`)
    else if (testLine === null)
      faults.push(`${file}:${line} ${id}: cited outside a test; say it inside the test that shows it`)
  }
  return faults
}

/** Documents that show less than they once did. */
export function belowFloor(coverage: readonly Coverage[], floor: Readonly<Record<string, unknown>>): readonly string[] {
  return coverage
    .filter((it) => it.covered < Number(floor[it.document]))
    .map(
      (it) =>
        `${it.document}: ${it.covered} shown, ${floor[it.document]} before: a test that showed a requirement is gone`,
    )
}
