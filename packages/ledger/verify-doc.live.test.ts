import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { ephemeralSigner } from '@plat/keys'
import { systemFiles } from '@plat/state'
import { appendCheckpoint, fillLedger, ledgerLines, writeLines } from '@plat/testkit/ledger'
import { appendUntilSealed, openSealing } from '@plat/testkit/sealed'
import { LedgerSequence, ListKeeper, leave, receiptFromLedger, segmentPath } from './index.ts'
import { compressSegment } from './retention/compress.ts'

let folder = ''
let script = ''
let path = ''
before(async () => {
  folder = mkdtempSync(join(tmpdir(), 'plat-'))
  script = join(folder, 'verify.mjs')
  path = join(folder, 'audit.jsonl')
  const page = readFileSync(new URL('../../docs/verify.md', import.meta.url), 'utf8')
  const [first = '', second = ''] = Array.from(page.matchAll(/```js\n(.*?)```/gs), ([, code]) => code)
  writeFileSync(script, first)
  writeFileSync(join(folder, 'proof.mjs'), second)
  await fillLedger(path, 199)
})
after(() => rmSync(folder, { recursive: true }))

/** Runs the script of the page as an auditor would. */
function verify(file: string): { code: number | null; stated: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, file], { encoding: 'utf8' })
  assert.equal(stderr, '')
  return { code: status, stated: stdout }
}

test('the script of the documentation is about thirty lines', () => {
  const lines = readFileSync(script, 'utf8').trim().split('\n').length
  assert.ok(lines >= 15 && lines <= 49, `${lines} lines`)
})

test('the script reports a good ledger as valid, with its head', () => {
  const { code, stated } = verify(path)
  assert.equal(code, 0)
  assert.equal(stated.trim(), `valid: 200 records, hash ${JSON.parse(ledgerLines(path).at(-1) ?? '').hash}`)
})

test('the script reports a ledger that ends below its head as truncated, with the missing records', () => {
  const cut = join(folder, 'cut.jsonl')
  writeLines(cut, ledgerLines(path).slice(0, 150))
  writeFileSync(`${cut}.head`, readFileSync(`${path}.head`))
  const { code, stated } = verify(cut)
  assert.equal(code, 6)
  assert.equal(stated.trim(), 'truncated: record 199 was durable, the ledger ends at record 149')
})

test('the script finds and locates changed bytes all over the ledger', () => {
  const good = readFileSync(path)
  const broken = join(folder, 'broken.jsonl')
  for (let sample = 0; sample < 12; sample++) {
    const at = 1 + Math.floor((good.length - 3) * (sample / 11))
    const bytes = Buffer.from(good)
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (sample % 8))
    writeFileSync(broken, bytes)
    const line = good.subarray(0, at).toString('latin1').split('\n').length
    const { code, stated } = verify(broken)
    assert.equal(code, 3)
    assert.match(
      stated,
      new RegExp(
        `broken at record ${line - 1}: broken.jsonl, line ${line}, byte ${good.lastIndexOf(0x0a, at - 1) + 1}\n`,
      ),
    )
  }
})

test('the script reads the segments of a ledger as one chain, and finds a missing one', () => {
  const lines = ledgerLines(path)
  const active = join(folder, 'parts.jsonl')
  const segment = (first: number) => `${active}.${String(first).padStart(20, '0')}.jsonl`
  writeLines(segment(0), lines.slice(0, 70))
  writeLines(segment(70), lines.slice(70, 120))
  writeLines(active, lines.slice(120))
  assert.equal(verify(active).stated, verify(path).stated)
  rmSync(segment(70))
  assert.match(verify(active).stated, /broken at record 70: parts.jsonl, line 1, byte 0/)
})

test('the script reads compressed segments, each once', async () => {
  const ledger = join(folder, 'sealed', 'audit.jsonl')
  const opened = await openSealing({ path: ledger })
  await appendUntilSealed(opened, ledger, 3)
  await opened.close()
  const plain = verify(ledger)
  assert.match(plain.stated, /^valid: /)
  await using sequence = await LedgerSequence.open(ledger)
  const { segments } = sequence
  const copy = readFileSync(segmentPath(ledger, 0))
  for (const [index, segment] of segments.entries()) {
    await compressSegment({ ledgerPath: ledger, segment, before: segments[index - 1] ?? null, files: systemFiles })
  }
  assert.deepEqual(verify(ledger), plain)
  writeFileSync(segmentPath(ledger, 0), copy)
  assert.deepEqual(verify(ledger), plain)
  const [zst] = globSync(`${ledger}.*.zst`)
  const listed = spawnSync('zstd', ['-dc', zst ?? ''])
  // Not every machine has the command.
  if (listed.error === undefined) assert.deepEqual(listed.stdout, copy)
})

test('the script follows the chain across segments that left, and says where they are', async () => {
  const ledger = join(folder, 'left', 'audit.jsonl')
  const list = new ListKeeper(ledger, null, {})
  const opened = await openSealing({ path: ledger, list })
  await appendUntilSealed(opened, ledger, 3)
  await opened.close()
  const whole = verify(ledger).stated
  await list.change((all) => all)
  const leaving = { ledgerPath: ledger, list, files: null }
  await using sequence = await LedgerSequence.open(ledger)
  for (const segment of sequence.segments.filter((_, index) => index !== 1)) {
    await leave(leaving, segment, {
      archive: segment.first === 0 ? 's3' : null,
      checkpoint: '',
      left: '2100-01-01T00:00:00Z',
    })
  }
  const { code, stated } = verify(ledger)
  assert.equal(code, 0, stated)
  assert.ok(stated.endsWith(whole), stated)
  assert.match(stated, /^records 0 to \d+ are not here: s3\nrecords \d+ to \d+ are not here: deleted\n/)
  const path = `${ledger}.left.1.jsonl`
  writeFileSync(path, readFileSync(path, 'utf8').replace('\\"first\\":0', '\\"first\\":1'))
  assert.match(verify(ledger).stated, /broken at record 0: wrong segment record/)
})

test('the script finds a missing line, a doubled line and a torn tail', () => {
  const lines = ledgerLines(path)
  const file = join(folder, 'other.jsonl')
  writeLines(file, lines.toSpliced(50, 1))
  assert.match(verify(file).stated, /broken at record 50:/)
  writeLines(file, lines.toSpliced(50, 0, lines[49] ?? ''))
  assert.match(verify(file).stated, /broken at record 50:/)
  writeFileSync(file, readFileSync(path).subarray(0, -30))
  const { code, stated } = verify(file)
  assert.equal(code, 4)
  assert.match(stated, /valid up to record 198, /)
})

test('the second script proves a record by its receipt and the public key, and rejects any change', async () => {
  for (const algorithm of ['EdDSA', 'ES256', 'RS256'] as const) {
    const ledger = join(folder, `${algorithm}.jsonl`)
    await fillLedger(ledger, 44)
    const signer = ephemeralSigner(algorithm)
    await appendCheckpoint(ledger, signer)
    const files = ['receipt', 'jwks', 'pem'].map((name) => join(folder, `${name}-${algorithm}`))
    const [receiptFile = '', jwks = '', pem = ''] = files
    writeFileSync(jwks, JSON.stringify({ keys: [{ ...signer.publicJwk, kid: signer.kid }] }))
    writeFileSync(pem, signer.publicKey.key.export({ format: 'pem', type: 'spki' }))
    const proven = (receipt: object, key: string) => {
      writeFileSync(receiptFile, JSON.stringify(receipt))
      const run = spawnSync(process.execPath, [join(folder, 'proof.mjs'), receiptFile, key], { encoding: 'utf8' })
      assert.equal(run.stderr, '')
      return run.stdout.trim()
    }
    for (const seq of algorithm === 'EdDSA' ? [0, 17, 44] : [17]) {
      const receipt = await receiptFromLedger(ledger, seq)
      assert.ok(typeof receipt !== 'string')
      assert.match(proven(receipt, seq === 17 ? pem : jwks), new RegExp(`^record ${seq} is one of the 45 records of`))
      const forged = { ...receipt, line: receipt.line.replace(/"kind":"\w+"/, '"kind":"other"') }
      assert.match(proven(forged, pem), /is not in the tree/)
      assert.match(proven({ ...receipt, inclusion: receipt.inclusion.slice(1) }, pem), /is not in the tree/)
    }
    const other = await receiptFromLedger(ledger, 3)
    assert.ok(typeof other !== 'string')
    const stranger = ephemeralSigner(algorithm).publicKey.key.export({ format: 'pem', type: 'spki' })
    writeFileSync(pem, stranger)
    assert.equal(proven(other, pem), 'the checkpoint is not signed by this key')
  }
})
