import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Worker } from 'node:worker_threads'
import { checkpointBody, fillLedger, ledgerLines, writeLines } from '@plat/testkit/ledger'
import { TreeKeeper } from './keeper.ts'

test('a separate thread grows the tree, and starts over after a failure', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plat-'))
  const path = join(folder, 'audit.jsonl')
  await fillLedger(path, 40)
  const keeper = new TreeKeeper(path)
  const { upTo: seq, head: hash, root } = checkpointBody(path)
  const lines = ledgerLines(path)
  await keeper.grow({ seq: 10, hash: JSON.parse(lines[10] ?? '').hash })
  assert.equal(await keeper.grow({ seq, hash }), root)
  writeLines(path, [...lines, (lines.at(-1) ?? '').replace(`"seq":${seq}`, `"seq":${seq + 1}`)])
  await assert.rejects(keeper.grow({ seq: seq + 1, hash: 'b'.repeat(64) }), /no longer holds record 41/)
  writeLines(path, lines)
  assert.equal(await keeper.grow({ seq, hash }), root)
  await keeper.close()
  await assert.rejects(keeper.grow({ seq, hash }), /closed/)
  rmSync(folder, { recursive: true })
})

test('a thread that ended while idle is replaced', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'plat-'))
  const path = join(folder, 'audit.jsonl')
  await fillLedger(path, 10)
  const keeper = new TreeKeeper(path)
  const { upTo: seq, head: hash, root } = checkpointBody(path)
  const started = new Promise<Worker>((resolve) => process.once('worker', resolve))
  assert.equal(await keeper.grow({ seq, hash }), root)
  await (await started).terminate()
  assert.equal(await keeper.grow({ seq, hash }), root)
  await keeper.close()
  rmSync(folder, { recursive: true })
})
