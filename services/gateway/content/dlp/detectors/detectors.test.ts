import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scanner } from '../scan/scanner.ts'
import { samples } from '../testing/samples.ts'
import { DETECTOR_IDS, detectorRows } from './table.ts'

const alone = (id: string) =>
  new Scanner(
    detectorRows()
      .filter((row) => row.id === id)
      .map((row, place) => ({ ...row, place })),
  )

test('every detector has a sample, and its own name', () => {
  assert.deepEqual([...samples.map(({ id }) => id)].sort(), [...DETECTOR_IDS].sort())
  assert.equal(new Set(DETECTOR_IDS).size, DETECTOR_IDS.length)
  for (const id of DETECTOR_IDS) assert.match(id, /^[a-z0-9_]{1,40}$/)
})

/** Contexts of a sample: alone, in prose, quotes, lines, JSON within a string, between other letters. */
const PLACES = [
  ['', ''],
  ['see ', ' there'],
  ['("', '")'],
  ['a\n', '\nb'],
  ['a\\n', '\\n'],
  ['ä', 'ö'],
] as const
/** Detectors that include the letter of an escaped line feed. */
const TAKES_ESCAPES = ['email', 'high_entropy_secret']

/** Samples that follow words for other reasons than detection. */
const ALONE_TOO = [
  'private_key',
  'slack_webhook',
  'discord_webhook',
  'azure_storage_key',
  'azure_sas_token',
  'terraform_token',
]

for (const { id, near = '', after = '', finds, misses } of samples) {
  test(`${id} finds its sample in any context, and no near miss`, () => {
    const scanner = alone(id)
    for (const [left, right] of PLACES) {
      if (left === 'a\\n' && TAKES_ESCAPES.includes(id)) continue
      const text = `${left}${near}${finds}${after}${right}`
      const start = `${left}${near}`.length
      const hits = scanner.scan(text).map((hit) => [hit.detector.id, hit.start, hit.end])
      assert.deepEqual(hits, [[id, start, start + finds.length]], text)
    }
    assert.deepEqual(scanner.scan(`see ${near}${misses}${after} there`), [], misses)
    if (near !== '') assert.deepEqual(scanner.scan(`see ${finds}`).length, ALONE_TOO.includes(id) ? 1 : 0)
  })
}
