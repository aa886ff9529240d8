import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { ephemeralSigner } from '@plat/keys'
import { appendCheckpoint, checkpointBody, fillLedger } from '@plat/testkit/ledger'
import { type Receipt, receiptFromLedger } from './receipt.ts'

// Verifies the checkpoint and the proof with Go's libraries for transparency logs, which read the C2SP formats: requires Go and its module proxy.
const MODULE = fileURLToPath(new URL('../../../test/transparency/go', import.meta.url))

let dir = ''
let checker = ''

before(() => {
  dir = mkdtempSync(join(tmpdir(), 'plat-'))
  checker = join(dir, 'transparency')
  const { status, stderr, error } = spawnSync('go', ['build', '-o', checker, '.'], { cwd: MODULE, encoding: 'utf8' })
  if (status !== 0) throw new Error(`the checker cannot be built with Go: ${error?.message ?? stderr.trim()}`)
})
after(() => rmSync(dir, { recursive: true }))

/** Verdict of the Go program on a receipt. */
function judged(receipt: Receipt, ledgerId: string, x: string): string {
  const origin = `plat.dev/ledger/${ledgerId}`
  const raw = Buffer.concat([Buffer.of(1), Buffer.from(x, 'base64url')])
  const id = hash('sha256', Buffer.concat([Buffer.from(`${origin}\n`), raw]), 'hex').slice(0, 8)
  const key = `${origin}+${id}+${raw.toString('base64')}`
  const { stdout, stderr } = spawnSync(checker, { input: JSON.stringify({ receipt, origin, key }), encoding: 'utf8' })
  return stdout.trim() + stderr
}

test('transparency tools can read the note and the inclusion proofs of a ledger', async () => {
  const signer = ephemeralSigner()
  const path = join(dir, 'audit.jsonl')
  await fillLedger(path, 44)
  const { ledgerId } = checkpointBody(path)
  const x = String(signer.publicJwk.x)
  await appendCheckpoint(path, signer)
  const receiptAt = async (seq: number) => {
    const receipt = await receiptFromLedger(path, seq)
    assert.ok(typeof receipt !== 'string')
    return receipt
  }
  for (let seq = 0; seq < 45; seq++) assert.equal(judged(await receiptAt(seq), ledgerId, x), 'proven', `record ${seq}`)
  const receipt = await receiptAt(17)
  const other = await receiptAt(18)
  assert.match(judged({ ...receipt, line: other.line }, ledgerId, x), /^inclusion: /)
  assert.match(judged({ ...receipt, inclusion: other.inclusion }, ledgerId, x), /^inclusion: /)
  assert.match(judged(receipt, ledgerId, String(ephemeralSigner().publicJwk.x)), /^note: /)
  const note = String(receipt.checkpoint.note).replace('\n45\n', '\n44\n')
  assert.match(judged({ ...receipt, checkpoint: { note } }, ledgerId, x), /^note: /)
})
