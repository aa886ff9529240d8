import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { receiptBeside, verifyLedger } from '@plat/ledger'
import { startGatewayProcess } from '@plat/testkit/gateway'
import { wholeLines } from '@plat/testkit/ledger'
import { tempFolder } from '@plat/testkit/local'
import { until } from '@plat/testkit/until'
import { act } from '../../testing/acting.ts'
import { TOKEN } from '../../testing/started.ts'
import { keyFiles } from './testing/keys.ts'

test('after a kill between checkpoints the next gateway verifies the whole ledger', async () => {
  const { uri, pub } = await keyFiles()
  const auditPath = join(tempFolder(), 'audit.jsonl')
  const config = { auditPath, auditCheckpointKey: uri, auditCheckpointEvery: 3 }
  const start = () =>
    startGatewayProcess({ servers: { notes: 'http://127.0.0.1:9' }, config, env: { PLAT_ADMIN_TOKEN: TOKEN } })
  const checkpointCount = () =>
    existsSync(`${auditPath}.checkpoints`) ? wholeLines(`${auditPath}.checkpoints`).length : 0
  const gateway = await start()
  const acting = act(gateway)
  await until(() => checkpointCount() > 3, 'some checkpoints')
  await gateway.kill()
  await acting
  await gateway.close()
  const last = await start()
  await last.close()
  const found = await verifyLedger(auditPath, { key: pub, strict: true, checkpoint: `${auditPath}.checkpoints` })
  assert.deepEqual([found.exitCode, found.unproven], [0, 0], found.message)
  const lines = wholeLines(auditPath)
  const checkpoints = lines.filter((line) => line.includes('"kind":"checkpoint"'))
  assert.equal(readFileSync(`${auditPath}.checkpoints`, 'utf8'), checkpoints.map((line) => `${line}\n`).join(''))
  for (let seq = 0; seq < lines.length - 1; seq += 7) {
    const receipt = await receiptBeside(auditPath, seq)
    assert.ok(typeof receipt !== 'string' && receipt.line === lines[seq])
  }
})
