import { hash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { systemClock, systemIds } from '@plat/core'
import type { Signer } from '@plat/keys'
import {
  anchorRecord,
  type CheckpointBody,
  type CheckpointKeys,
  leafHash,
  MerkleTree,
  openLedger,
  type Rec,
  readNote,
  signCheckpoint,
  signNote,
} from '@plat/ledger'

/** Lines of a ledger file, without their LF. */
export function ledgerLines(path: string): string[] {
  const text = readFileSync(path, 'utf8')
  return text.endsWith('\n') ? text.slice(0, -1).split('\n') : text.split('\n')
}

/** The same of a ledger that a process is writing: a line without its LF is still on its way. */
export function wholeLines(path: string): string[] {
  return readFileSync(path, 'utf8').split('\n').slice(0, -1)
}

/** Opens the ledger, appends `count` records as governed calls leave them (an intent, then its outcome), and closes it. */
export async function fillLedger(path: string, count: number): Promise<void> {
  const ids = systemIds(systemClock)
  const ledger = await openLedger({ path, tenant: '', replica: 'test', clock: systemClock, ids })
  let call = ''
  const appended: Promise<unknown>[] = []
  for (let index = 0; index < count; index++) {
    const opens = index % 2 === 0 && index < count - 1
    if (opens) call = ids.uuid()
    const shared = { call, session: 's-1', namespace: 'default', agent: 'assistant', user: 'alice', op: 'mcp.call' }
    const more = opens ? { action: 'allow', argsBytes: 21 } : { result: 'completed', status: 200, ms: 4 }
    appended.push(
      ledger.append({ kind: opens ? 'intent' : 'outcome', ...shared, tool: 'add_note', server: 'notes', ...more }),
    )
  }
  await Promise.all(appended)
  await ledger.close()
}

/** Returns the body of a checkpoint over all records of the file. */
export function checkpointBody(path: string): CheckpointBody {
  const lines = ledgerLines(path)
  const tree = new MerkleTree()
  for (const line of lines) tree.add(leafHash(Buffer.from(line)))
  const genesis = JSON.parse(lines[0] ?? '').rec
  const head = JSON.parse(lines.at(-1) ?? '').hash
  return { ledgerId: genesis.ledgerId, upTo: lines.length - 1, head, size: lines.length, root: tree.root() }
}

/** Signs a checkpoint over all records and appends it. Answers the record. `change` makes it lie before it is signed. */
export async function appendCheckpoint(
  path: string,
  signer: Signer | CheckpointKeys,
  change: Partial<CheckpointBody> = {},
) {
  const keys = 'sign' in signer ? { signer, pq: null, hmacKey: null } : signer
  const rec = await signCheckpoint(keys, { ...checkpointBody(path), ...change })
  await appendRecord(path, rec)
  return rec
}

/** Appends the anchor of the last record, which is a checkpoint, in a log that holds nothing else. Answers the record. */
export async function appendAnchor(path: string, logSigner: Signer): Promise<Rec> {
  const { seq, rec } = JSON.parse(ledgerLines(path).at(-1) ?? '')
  const { text = '', signatures: [signed] = [] } = readNote(rec.note) ?? {}
  const content = signed?.signature.toString('base64')
  const data = { hash: { algorithm: 'sha256', value: hash('sha256', text, 'hex') } }
  const entry = Buffer.from(JSON.stringify({ spec: { data, signature: { content } } }))
  const root = leafHash(entry).toString('hex')
  const note = await signNote(logSigner, { origin: 'log.example', size: 1, root })
  const proof = { entry: entry.toString('base64'), index: 0, size: 1, inclusion: [], note }
  const anchor = anchorRecord('https://log.example', { seq, rec }, proof)
  await appendRecord(path, anchor)
  return anchor
}

async function appendRecord(path: string, rec: Rec): Promise<void> {
  const parts = { path, tenant: '', replica: 'test', clock: systemClock, ids: systemIds(systemClock) }
  const ledger = await openLedger(parts)
  await ledger.append(rec)
  await ledger.close()
}

/** Replaces the file by these lines. */
export function writeLines(path: string, lines: readonly string[]): void {
  writeFileSync(path, lines.map((line) => `${line}\n`).join(''))
}
