import assert from 'node:assert/strict'
import { readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { compressInThread, keysPath, segmentsPath, verifyReceipt } from '@plat/ledger'
import { tempFolder } from '@plat/testkit/local'
import { type SegmentedLedger, writeSegments } from '@plat/testkit/segments'
import { CommandError, type Output } from '../shared/output.ts'
import { auditExport } from './export/export.ts'
import { auditGrep } from './grep.ts'
import { auditProof } from './proof.ts'
import { auditShow } from './show.ts'
import { auditTail } from './tail.ts'
import { auditVerify } from './verify.ts'

const signer = ephemeralSigner()
/** A call of the second segment, and one of its records. */
const CALL = 'call-8'
const SEQ = '15'

async function ledgerOf(): Promise<SegmentedLedger> {
  const some = await writeSegments(join(tempFolder(), 'audit.jsonl'), { segments: 3, records: 12, signer })
  writeFileSync(keysPath(some.path), JSON.stringify({ keys: [signer.publicJwk] }))
  return some
}

/** Runs a command as the program does. Returns its exit code, the lines on stderr, and those on stdout. */
async function run(command: (output: Output) => Promise<number>) {
  const [out, err]: string[][] = [[], []]
  const output: Output = { out: (text) => void out?.push(text), err: (text) => void err?.push(text) }
  try {
    return { code: await command(output), err: err ?? [], out: out ?? [] }
  } catch (error) {
    const code = error instanceof CommandError ? error.exitCode : 1
    return { code, err: [...(err ?? []), error instanceof Error ? error.message : String(error)], out: out ?? [] }
  }
}

/** The commands that read a ledger, with its path. */
function commandsOf(path: string) {
  const file = join(tempFolder(), 'all.csv')
  return {
    verify: () => run((output) => auditVerify({ path, output: 'table' }, output)),
    tail: () => run((output) => auditTail({ path, lines: '1000', output: 'json' }, output)),
    grep: () => run((output) => auditGrep({ path, user: 'alice', output: 'json' }, output)),
    show: () => run((output) => auditShow({ path, id: CALL, output: 'table' }, output)),
    export: () => run((output) => auditExport({ path, output: file }, output)),
    proof: () => run((output) => auditProof({ path, seq: SEQ, output: 'json' }, output)),
  }
}

test('a search, an export and a decision say which records left, and where they are', async () => {
  const { path, leave, files } = await ledgerOf()
  const checkpoint = files.at(-1)?.lines[0] ?? ''
  leave(0, { archive: 's3://bucket/plat/one.jsonl', checkpoint })
  leave(1, { archive: 's3://bucket/plat/two.jsonl', checkpoint })
  const { verify, grep, show, export: exported, proof, tail } = commandsOf(path)
  const left =
    /records 0 to 25 are archived at s3:\/\/bucket\/plat\/ and were not searched: to read them, copy the files back/
  for (const command of [grep, exported]) {
    const { code, err } = await command()
    assert.deepEqual([code, err.filter((line) => left.test(line)).length], [0, 1], err.join('\n'))
  }
  const refused = await show()
  assert.deepEqual([refused.code, refused.err.length], [1, 1])
  assert.match(refused.err[0] ?? '', new RegExp(`no call ${CALL}; ${left.source}`))
  const { code, out } = await verify()
  assert.equal(code, 0)
  assert.match(out.join('\n'), /records 0 to 25 are archived at s3:\/\/bucket\/plat\//)
  const proved = await proof()
  assert.equal(proved.code, 1)
  assert.match(
    proved.err.join('\n'),
    /records 13 to 25 are archived at s3:\/\/bucket\/plat\/two.jsonl .*copy that file back/,
  )
  assert.deepEqual([(await tail()).code, (await tail()).out.length], [0, 26])
  // Nothing of a later range left.
  const later = await run((output) => auditGrep({ path, since: '26', user: 'alice', output: 'json' }, output))
  assert.deepEqual([later.code, later.err], [0, []])
})

test('each command names a segment that is missing or damaged in one line, with the next step', async () => {
  const cases = {
    missing: { change: (file: string) => rmSync(file), expected: /\d{20}\.jsonl is missing: restore it/, verified: 2 },
    cut: { change: (file: string) => truncateSync(file, 500), expected: /\d{20}\.jsonl is shorter than/, verified: 3 },
    'cut, compressed': {
      compressed: true,
      change: (file: string) => truncateSync(`${file}.zst`, 300),
      expected: /\d{20}\.jsonl\.zst is damaged: it does not end with a valid table/,
      verified: 3,
    },
    'changed, compressed': {
      compressed: true,
      change(file: string) {
        const bytes = readFileSync(`${file}.zst`)
        writeFileSync(`${file}.zst`, bytes.with(200, (bytes[200] ?? 0) ^ 1))
      },
      expected: /\d{20}\.jsonl\.zst is damaged at bytes 0 to \d+: a frame cannot be decompressed/,
      verified: 3,
    },
  }
  for (const [name, { change, expected, verified, ...more }] of Object.entries(cases)) {
    const { path, files } = await ledgerOf()
    const second = files[1]?.path ?? ''
    if ('compressed' in more) {
      const { fault } = await compressInThread(path, files[1]?.first ?? 0, new AbortController().signal)
      assert.equal(fault, null)
    }
    change(second)
    for (const [command, act] of Object.entries(commandsOf(path))) {
      const { code, err, out } = await act()
      const [line = ''] = command === 'verify' && verified === 3 ? out : err
      assert.equal(code, command === 'verify' ? verified : 1, `${command}, ${name}: ${line}`)
      assert.match(line, expected, `${command}, ${name}`)
      assert.match(line, /: restore it from a copy with `plat audit repair .* -from <copy>`$/, `${command}, ${name}`)
      assert.ok(!line.includes('\n'), line)
    }
    const { out } = await run((output) => auditVerify({ path, output: 'json' }, output))
    if (verified === 3)
      assert.equal(basename(JSON.parse(out[0] ?? '').place.path).replace('.zst', ''), basename(second))
  }
})

test('a record is proven though a segment after it left, with the tree beside the ledger', async () => {
  const { path, leave, files } = await ledgerOf()
  leave(1, { archive: 's3://bucket/plat/two.jsonl', checkpoint: files.at(-1)?.lines[0] ?? '' })
  const { out, code } = await run((output) => auditProof({ path, seq: '3', output: 'json' }, output))
  assert.equal(code, 0)
  const trust = { keys: [signer.publicKey], hmacKey: null }
  const found = verifyReceipt(JSON.parse(out.join('\n')), trust)
  assert.ok(typeof found === 'object' && found.signed === true && found.seq === 3, JSON.stringify(found))
  rmSync(`${path}.tree`)
  const without = await run((output) => auditProof({ path, seq: '3', output: 'json' }, output))
  assert.match(without.err[0] ?? '', /records 13 to 25 are archived/)
})

test('a list of what left that is missing is named, and without it the ledger is read again when the other list is moved away', async () => {
  const { path, leave } = await ledgerOf()
  leave(0, { archive: 's3://bucket/plat/one.jsonl' })
  const state = { file: `${basename(path)}.left.1.jsonl`, bytes: 9, count: 1, hash: 'a'.repeat(64), last: 12, end: 9 }
  const { segments } = JSON.parse(readFileSync(segmentsPath(path), 'utf8'))
  writeFileSync(segmentsPath(path), JSON.stringify({ v: 2, left: state, segments: segments.slice(1) }))
  const { verify, grep } = commandsOf(path)
  const expected =
    /left\.1\.jsonl, which lists the segments that left, is missing: restore it from a copy; without one, move .*segments\.json away/
  for (const [command, code] of [
    [verify, 2],
    [grep, 1],
  ] as const) {
    const found = await command()
    assert.deepEqual([found.code, found.err.length], [code, 1])
    assert.match(found.err[0] ?? '', expected)
  }
  rmSync(segmentsPath(path))
  assert.equal((await grep()).code, 0)
  const { code, out } = await verify()
  assert.equal(code, 3)
  assert.match(out[0] ?? '', /^broken at record 0 .*records 0 to 12 are missing: they are neither here nor listed/)
})
