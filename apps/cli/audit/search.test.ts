import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { before, test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { keysPath, verifyLedger } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { type SegmentedLedger, timeOfRecord, writeSegments } from '@plat/testkit/segments'
import { until } from '@plat/testkit/until'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { CommandError } from '../shared/output.ts'
import { printed, putResource } from '../testing/commands.ts'
import { type AuditExportOptions, auditExport } from './export/export.ts'
import { auditGrep } from './grep.ts'
import type { RecordFormat } from './layout.ts'
import type { FilterFlags } from './moments.ts'
import { auditShow } from './show.ts'
import { auditTail } from './tail.ts'

/** An id of a call: a UUID of version 7, whose time is that of record `seq`. */
function callId(seq: number): string {
  const time = Date.parse(timeOfRecord(seq)).toString(16).padStart(12, '0')
  return `${time.slice(0, 8)}-${time.slice(8)}-7000-8000-000000000001`
}

const CALL = callId(15)
const APPROVAL = callId(12)
const HOSTILE = '=cmd|"/C calc"!A0'
/** Two cells where commas are decimal separators, one of them a formula. */
const INNER = 'a; =1+1'
const HITS = [
  { action: 'redact', count: 2, detector: 'iban', direction: 'arguments' },
  { action: 'audit', count: 1, detector: 'email\u202e', direction: 'response' },
]
const signer = ephemeralSigner()
let ledger: SegmentedLedger
let path = ''

/** Three sealed segments and the active file: an approval, a call that used it, a refusal and a hostile tool. */
function recordOf(seq: number): object {
  if (seq === 13) return { kind: 'approval', approval: APPROVAL, event: 'granted', by: 'bob', call: undefined }
  if (seq === 15) return { call: CALL, approval: APPROVAL, policy: 'default/p', rule: 'ask' }
  if (seq === 16)
    return {
      dlp: HITS,
      call: CALL,
      costMicros: 1200,
      currency: 'EUR',
      action: 'allow',
      policy: 'default/p',
      rule: 'ask',
    }
  if (seq === 20)
    return { kind: 'decision', call: callId(20), action: 'deny', code: 'policy_denied', result: undefined }
  if (seq === 25) return { tool: INNER }
  if (seq === 24) return { tool: HOSTILE, agent: 'übung\u202e\u0007', session: 's-2' }
  return {}
}

before(async () => {
  path = join(tempFolder(), 'audit.jsonl')
  ledger = await writeSegments(path, { segments: 3, records: 10, signer, record: recordOf })
  writeFileSync(keysPath(path), JSON.stringify({ keys: [signer.publicJwk] }))
})

const screen = { columns: 80, isColored: false }

async function grepped(flags: FilterFlags & { since?: string; until?: string; newest?: boolean; limit?: string }) {
  const clock = { now: () => Date.parse(timeOfRecord(30)) }
  const { text } = await printed((output) => auditGrep({ path, ...flags, output: 'json' }, output, { clock, screen }))
  return text === 'no record matches' ? [] : text.split('\n').map((line) => JSON.parse(line).seq)
}

test('grep selects by members, refusals, text and time, across segments and in both orders', async () => {
  assert.deepEqual(await grepped({ decision: CALL }), [15, 16])
  assert.deepEqual(await grepped({ denied: true }), [20])
  assert.deepEqual(await grepped({ session: 's-2' }), [24])
  assert.deepEqual(await grepped({ text: 'policy_den' }), [20])
  assert.deepEqual(await grepped({ tool: HOSTILE }), [24])
  assert.deepEqual(await grepped({ agent: 'other/assistant' }), [])
  assert.equal((await grepped({ agent: 'agent:assistant' })).length, (await grepped({ agent: 'assistant' })).length)
  assert.notEqual((await grepped({ agent: 'agent:assistant' })).length, 0)
  assert.deepEqual(await grepped({ since: '20', until: '23' }), [20, 21, 22, 23])
  assert.deepEqual(await grepped({ since: '5s', until: timeOfRecord(26), newest: true }), [26, 25])
  assert.deepEqual(await grepped({ agent: 'default/assistant', newest: true, limit: '3' }), [43, 41, 40])
  await assert.rejects(
    grepped({ since: 'yesterday' }),
    (error) => error instanceof CommandError && error.exitCode === 2,
  )
  await assert.rejects(grepped({ text: 'x'.repeat(257) }), /-text: give 1 to 256 characters/)
})

/** Lines that `tail` prints. */
async function tailed(
  flags: FilterFlags & { lines?: string; output?: RecordFormat; columns?: number; isColored?: boolean },
) {
  const { columns = 80, isColored = false, output: format = 'table', ...rest } = flags
  const options = { path, lines: '100', ...rest, output: format }
  return (await printed((output) => auditTail(options, output, { screen: { columns, isColored } }))).text.split('\n')
}

test('tail fits into the terminal, shows control characters, and has colors only where they are wanted', async () => {
  for (const columns of [60, 80, 200]) {
    const lines = await tailed({ columns })
    assert.equal(lines.length, 44)
    assert.ok(
      lines.every((line) => line.length <= columns),
      `${columns}: ${Math.max(...lines.map((line) => line.length))}`,
    )
  }
  const [hostile = ''] = await tailed({ session: 's-2' })
  assert.match(hostile, /^24 {6}00:00:24 {2}completed +übung\?\? +notes\/=cmd\|/)
  assert.match((await tailed({ session: 's-2', output: 'wide' })).join(), /default\/übung\?\?.*=cmd\|"\/C calc"!A0/)
  assert.ok((await tailed({ denied: true, isColored: true })).join().includes('\u001b[31mdenied'))
  assert.doesNotMatch((await tailed({})).join(), /[\p{Cc}\p{Cf}]/u)
})

test('tail selects the last records, and one line for each call', async () => {
  assert.deepEqual(
    (await tailed({ lines: '2', session: 's-1' })).map((line) => line.slice(0, 2)),
    ['41', '43'],
  )
  const calls = await tailed({ calls: true, output: 'json' })
  assert.ok(calls.every((line) => ['outcome', 'decision'].includes(JSON.parse(line).rec.kind)))
  assert.deepEqual(
    (await tailed({ denied: true })).map((line) => line.slice(0, 2)),
    ['20'],
  )
})

async function exported(options: Omit<AuditExportOptions, 'path'>) {
  const stdout = new PassThrough()
  const chunks: Buffer[] = []
  stdout.on('data', (chunk: Buffer) => chunks.push(chunk))
  const { text } = await printed((output) => auditExport({ path, ...options }, output, { stdout, screen: stdout }))
  stdout.end()
  return { text, out: Buffer.concat(chunks).toString() }
}

test('JSON lines are those of the ledger, which verify, and a range has its records alone', async () => {
  const { out, text } = await exported({})
  const copy = join(tempFolder(), 'copy.jsonl')
  writeFileSync(copy, out)
  assert.equal((await verifyLedger(copy, { strict: true })).records, 44)
  assert.equal(text, '44 records')
  const range = await exported({ from: '10', to: timeOfRecord(12) })
  assert.deepEqual(
    range.out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line).seq),
    [10, 11, 12],
  )
})

test('CSV has quoted cells and no formulas', async () => {
  const { out } = await exported({ format: 'csv', from: '24', to: '24' })
  const [head = '', row = '', end] = out.split('\r\n')
  assert.match(head, /^\ufeffseq,at,kind,namespace,agent,/)
  assert.ok(row.includes(`"'${HOSTILE.replaceAll('"', '""')}"`), row)
  assert.match(row, /^24,2026-01-01T00:00:24\.000000Z,outcome,default,/)
  assert.equal(end, '')
})

test('CSV has no formula either for programs that end cells at semicolons, and its JSON keeps its value', async () => {
  const { out } = await exported({ format: 'csv', from: '25', to: '25' })
  const [, row = ''] = out.split('\r\n')
  assert.match(row, /,a; '=1\+1,/)
  for (const cell of row.split(/[;\t]/)) assert.doesNotMatch(cell, /^\s*[=+@-]/)
  const json = row.slice(row.indexOf('"{') + 1, -1).replaceAll('""', '"')
  assert.equal(JSON.parse(json).tool, INNER)
})

test('a Parquet file has all records with their types, and is there only when it is whole', async () => {
  const folder = tempFolder()
  const file = join(folder, 'out.parquet')
  writeFileSync(file, 'before')
  await assert.rejects(exported({ output: file, to: 'x' }))
  assert.equal(readFileSync(file, 'utf8'), 'before')
  const { text } = await exported({ output: file })
  assert.equal(text, `44 records written to ${file}`)
  assert.deepEqual(readdirSync(folder), ['out.parquet'])
  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file) })
  assert.equal(rows.length, 44)
  const row = rows[16]
  assert.deepEqual([row?.seq, row?.tool, row?.costMicros, row?.user], [16n, 'add_note', 1200n, 'alice'])
  assert.deepEqual([row?.dlpHits, rows[15]?.dlpHits], [3n, null])
  assert.deepEqual(row?.at, new Date(timeOfRecord(16)))
  assert.deepEqual(JSON.parse(String(row?.record)), JSON.parse(ledger.files[1]?.lines[16 - 11] ?? '').rec)
  await assert.rejects(exported({ output: join(folder, 'none', 'x.csv') }), /cannot be written: .*ENOENT/)
})

test('a slow reader of stdout slows the export', async () => {
  const stdout = new PassThrough({ highWaterMark: 1 })
  const done = printed((output) => auditExport({ path }, output, { stdout, screen: stdout }))
  await until(() => stdout.writableNeedDrain, 'the export to wait')
  let text = ''
  stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString()
  })
  await done
  assert.equal(text.trimEnd().split('\n').length, 44)
})

test('show leads from a call to its approval, cost, rule, and the receipt that its keys prove', async () => {
  const dir = tempFolder()
  const rules = [
    { name: 'never', action: 'deny', match: { tools: ['x'] } },
    { name: 'ask', action: 'allow', match: { tools: ['add_note'] } },
  ]
  await putResource(dir, 'toolpolicies/default/p.yaml', 'ToolPolicy', { rules })
  const show = (more = {}, id = CALL) =>
    printed((output) => auditShow({ path, id, output: 'table', ...more }, output, {}))
  const { code, text } = await show({ file: dir })
  assert.equal(code, 0)
  for (const row of [
    /^target +notes\/add_note$/m,
    /^policy +default\/p$/m,
    /^cost +0\.001200 EUR$/m,
    /^dlp +iban in arguments: 2 redact, email\? in response: 1 audit$/m,
    new RegExp(`^approval +${APPROVAL} granted by bob$`, 'm'),
    /^rule at +toolpolicies\/default\/p\.yaml:1$/m,
    /^records +13, 15, 16$/m,
    /^receipt +of record 16: proven by a signed checkpoint over 42 records; plat audit proof 16 prints it$/m,
  ])
    assert.match(text, row)
  const other = join(tempFolder(), 'other.jwk')
  writeFileSync(other, JSON.stringify(ephemeralSigner().publicJwk))
  assert.equal((await show({ key: other })).code, 3)
  const json = JSON.parse((await show({ output: 'json' })).text)
  assert.deepEqual([json.records.length, json.receipt.seq, json.proof], [3, 16, 'proven'])
  await assert.rejects(show({}, 'nosuch'), /the ledger has no call nosuch/)
  await assert.rejects(show({ file: join(dir, 'resources') }), /resources has no resources\/ folder/)
  await assert.rejects(
    show({ key: join(dir, 'none') }),
    (error) => error instanceof CommandError && error.exitCode === 2,
  )
})
