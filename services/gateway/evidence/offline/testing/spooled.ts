import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { systemIds, TestClock } from '@plat/core'
import { ephemeralSigner } from '@plat/keys'
import { NO_RECORD, openLedger, type SegmentReceipt, signSegmentReceipt } from '@plat/ledger'
import { silentLog } from '@plat/process'
import { tempFolder } from '@plat/testkit/local'
import { staticSource } from '@plat/tokens'
import { CollectorContact } from '../collector-contact.ts'
import { Sealer, type SealerOptions } from '../sealer.ts'
import { Spool } from '../spool.ts'

export const [edgeKey, hubKey] = [ephemeralSigner(), ephemeralSigner()]

/** A ledger on a manual clock, and a spool over it that can be reopened. */
export async function setUpSpool(t: TestContext) {
  const dir = tempFolder()
  const clock = new TestClock()
  const path = join(dir, 'audit.jsonl')
  const spoolDir = join(dir, 'spool')
  const ledger = await openLedger({ path, tenant: '', replica: 'test', clock, ids: systemIds(clock) })
  t.after(() => ledger.close())
  const ledgerId: string = JSON.parse(readFileSync(path, 'utf8').trim()).rec.ledgerId
  const lines = () => readFileSync(path, 'utf8').trimEnd().split('\n')
  const hashOf = (seq: number): string => (seq < 0 ? NO_RECORD.hash : JSON.parse(lines()[seq] ?? '').hash)
  const write = async (count: number) => {
    for (let index = 0; index < count; index++) await ledger.append({ kind: 'alert', reason: 'x'.repeat(500) })
  }
  const open = async (more: Partial<SealerOptions> & { maxBytes?: number; edge?: string } = {}) => {
    const { maxBytes = 1e9, edge = 'north', ...own } = more
    const spool = await Spool.open({ dir: spoolDir, edge, ledgerId, maxBytes, log: silentLog })
    const sealer = new Sealer({
      spool,
      ledgerPath: path,
      ledgerId,
      edge,
      head: () => ledger.head(),
      signer: async () => edgeKey,
      maxRecords: 10,
      intervalMs: 60_000,
      dropsForwarded: false,
      clock,
      ...own,
    })
    const sealAll = async () => {
      while (await sealer.seal(0));
    }
    const contact = new CollectorContact({
      edge,
      ledgerId,
      keys: staticSource([hubKey.publicKey]),
      spool,
      hashOf: (seq) => sealer.hashOf(seq),
      clock,
      log: silentLog,
    })
    return { spool, sealer, sealAll, contact }
  }
  const receipt = (upTo: number, change: Partial<SegmentReceipt> = {}, key = hubKey) =>
    signSegmentReceipt(key, {
      collector: 'hub',
      edge: 'north',
      ledgerId,
      upTo,
      head: hashOf(upTo),
      seal: 'none',
      at: new Date(clock.now()).toISOString(),
      ...change,
    })
  const segments = () => readdirSync(spoolDir).filter((name) => name.endsWith('.segment'))
  return { clock, ledger, ledgerId, path, spoolDir, lines, write, open, receipt, segments }
}
