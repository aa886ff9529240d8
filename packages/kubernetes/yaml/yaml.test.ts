import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import { readYaml } from './read.ts'
import { writeYaml } from './write.ts'

interface Vector {
  readonly text: string
  readonly refused?: boolean
  readonly json?: unknown
}

/** Results of sigs.k8s.io/yaml for the same texts; the program next to the file writes it. */
const vectors: readonly Vector[] = readFileSync(
  new URL('../testing/yaml-vectors/vectors.jsonl', import.meta.url),
  'utf8',
)
  .trimEnd()
  .split('\n')
  .map((line): Vector => JSON.parse(line))

/** Texts that this parser refuses although sigs.k8s.io/yaml accepts them. */
const STRICTER =
  /unsupported tag|duplicate key|a key that is not a string|more than one document|infinity and NaN|write it in quotes|not allowed within flow/

/** Texts that it accepts although sigs.k8s.io/yaml does not: JSON escapes, and addresses in flow lists. */
const WIDER: ReadonlySet<string> = new Set(['a: "\\/"', 'a: "\\uD83D\\uDE00"', 'a: "\\ud83d"', 'a: [::1]'])

test('YAML has the same meaning as in kubectl, or is refused', () => {
  const wrong: string[] = []
  let same = 0
  for (const { text, refused, json } of vectors) {
    const { value, problems } = readYaml(text)
    const [problem] = problems
    const message = problem?.message ?? ''
    const agrees = refused === true ? problem !== undefined : problem === undefined && isDeepStrictEqual(value, json)
    if (agrees) same++
    else if (refused === true ? !WIDER.has(text) : !STRICTER.test(message))
      wrong.push(
        `${JSON.stringify(text)}: ${message || JSON.stringify(value)}, not ${JSON.stringify(json) ?? 'refused'}`,
      )
  }
  assert.deepEqual(wrong, [])
  assert.ok(same > 1400, `${same} of ${vectors.length} are read the same`)
})

test('every string is written so that it parses to itself', () => {
  const strings = new Set(vectors.flatMap(({ text }) => [text, text.replace(/^(?:a: |- )|: a$|^'|'$/g, '')]))
  for (const text of strings) {
    const written = writeYaml({ a: text, list: [text] })
    const { value, problems } = readYaml(written)
    assert.deepEqual({ value, problems }, { value: { a: text, list: [text] }, problems: [] }, JSON.stringify(text))
  }
})

test('a problem has its line', () => {
  assert.deepEqual(readYaml('a: 1\nb:\n  c: 1\n  c: 2\n').problems, [{ line: 4, message: 'c: duplicate key' }])
  assert.deepEqual(readYaml('a: 1\nb: .inf\n').problems[0]?.line, 2)
})

test('anchors that multiply a text are refused', () => {
  const lines = Array.from({ length: 10 }, (_, at) => `a${at + 1}: &a${at + 1} [${`*a${at},`.repeat(10)}]`)
  const { problems } = readYaml(`a0: &a0 [1]\n${lines.join('\n')}\n`)
  assert.match(problems[0]?.message ?? '', /aliases add more than 10000 nodes/)
})

test('text nested too deeply is refused, not thrown', () => {
  for (const deep of ['['.repeat(500_000), '- '.repeat(500_000), '{a: '.repeat(200_000)])
    assert.equal(readYaml(deep).problems.length, 1)
})
