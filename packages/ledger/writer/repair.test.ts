import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { type Files, systemFiles } from '@plat/state'
import { tempFolder } from '@plat/testkit/local'
import { headFile, openLedger, refuseRolledBack, repairLedger, verifyLedger } from '../index.ts'
import { checkpointsPath, treePath } from '../proof/stored-checkpoint.ts'

/** A ledger whose record 3 of 6 is damaged; checkpoint and head name later ones. */
async function damagedLedger() {
  const path = join(tempFolder(), 'audit.jsonl')
  const clock = new TestClock()
  const options = { path, clock, ids: systemIds(clock), heads: [headFile(path)] }
  const ledger = await openLedger({ ...options, tenant: '', replica: 'r1' })
  for (let count = 0; count < 5; count++) await ledger.append({ kind: 'admin', user: 'alice' })
  await ledger.append({ kind: 'checkpoint', upTo: 5 })
  await ledger.close()
  const lines = readFileSync(path, 'utf8').split('\n')
  writeFileSync(checkpointsPath(path), `${lines.at(-2)}\n`)
  writeFileSync(treePath(path), '')
  const damaged = lines.with(3, (lines[3] ?? '').replace('alice', 'mallo')).join('\n')
  writeFileSync(path, damaged)
  return { path, options, damaged, removed: damaged.slice(lines.slice(0, 3).join('\n').length + 1) }
}

/** The system's files; the repair ends before or directly after it cuts the ledger. */
function endingAtCut(path: string, when: 'before' | 'after'): Files {
  return {
    ...systemFiles,
    openAppend(name) {
      const handle = systemFiles.openAppend(name)
      return {
        size: () => handle.size(),
        read: (target, position) => handle.read(target, position),
        write: (bytes) => handle.write(bytes),
        append: (bytes, done) => handle.append(bytes, done),
        truncate(size) {
          if (name !== path || when === 'after') handle.truncate(size)
          if (name === path) throw new Error('the process ended')
        },
        close: () => handle.close(),
      }
    },
  }
}

test('a repair that ended before or after it cut the ledger is completed by the next one', async () => {
  for (const when of ['before', 'after'] as const) {
    const { path, options, damaged, removed } = await damagedLedger()
    await assert.rejects(repairLedger({ ...options, files: endingAtCut(path, when) }), /the process ended/)
    if (when === 'before') assert.equal(readFileSync(path, 'utf8'), damaged)
    await repairLedger(options)
    assert.equal(readFileSync(`${path}.damaged-3`, 'utf8'), removed, when)
    assert.ok(existsSync(`${checkpointsPath(path)}.damaged-3`) && !existsSync(treePath(path)), when)
    await refuseRolledBack(path)
    await (await openLedger({ ...options, tenant: '', replica: 'r1' })).close()
    const { exitCode, message } = await verifyLedger(path, { strict: true, beside: true })
    assert.equal(exitCode, 0, message)
    assert.match(readFileSync(path, 'utf8'), /"kind":"recovered"/)
  }
})
