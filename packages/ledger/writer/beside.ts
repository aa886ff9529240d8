import { readFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import { isMissing } from '@plat/state'
import { readCheckpointText } from '../proof/checkpoint.ts'
import { checkpointsPath, keysPath, lastCheckpoint } from '../proof/stored-checkpoint.ts'
import { judgeCheckpoint, type Trust } from '../proof/trust.ts'
import type { Claim } from '../verify/claim-table.ts'
import { VerifyUsageError } from '../verify/finding.ts'
import { headPath, isHeadSigned, readHead } from './head-file.ts'

/** Files beside a ledger for its verification. An attacker who can write the ledger can replace them too. */
export interface Beside {
  /** File of public keys; null when it is missing, or another one was given. */
  readonly key: { readonly key: string } | null
  claims(trust: Trust | null): readonly Claim[]
}

export const NOTHING_BESIDE: Beside = { key: null, claims: () => [] }

/** Reads head, last checkpoint and key file name beside a ledger. Throws VerifyUsageError when one exists and is unusable. */
export async function readBeside(
  ledgerPath: string,
  given: { readonly key?: string; readonly checkpoint?: string },
): Promise<Beside> {
  const [head, checkpoints, keys] = await Promise.all([
    readText(headPath(ledgerPath)),
    given.checkpoint === undefined ? readLastCheckpoint(ledgerPath) : null,
    given.key === undefined ? readText(keysPath(ledgerPath)) : null,
  ])
  const key = keys === null ? null : { key: keysPath(ledgerPath) }
  return {
    key,
    claims: (trust) => [
      ...(head === null ? [] : [headClaim(head, headPath(ledgerPath), trust)]),
      ...(checkpoints === null ? [] : lastCheckpointClaim(checkpoints, checkpointsPath(ledgerPath), trust)),
    ],
  }
}

function headClaim(text: string, path: string, trust: Trust | null): Claim {
  const head = readHead(text)
  if (head === null) throw new VerifyUsageError(`${path} is not the head of a ledger`)
  const { ledgerId, seq, hash } = head
  const signed = trust !== null && isHeadSigned(head, trust)
  return { ledgerId, size: seq + 1, head: hash, root: null, seq: null, signed, kind: 'checkpoint', source: path }
}

/** The last checkpoint covers everything before it. */
function lastCheckpointClaim(line: string, path: string, trust: Trust | null): Claim[] {
  const checkpoint = readCheckpointText(line)
  if (typeof checkpoint === 'string') throw new VerifyUsageError(`${path} holds no checkpoint: ${checkpoint}`)
  const signed = trust !== null && judgeCheckpoint(checkpoint, trust) === true
  const { ledgerId, size, head, root } = checkpoint
  return [{ ledgerId, size, head, root, seq: null, signed, kind: 'checkpoint', source: path }]
}

/** Returns the last complete line: a crash may leave half of one after it. */
async function readLastCheckpoint(ledgerPath: string): Promise<string | null> {
  try {
    return (await lastCheckpoint(ledgerPath))?.text ?? null
  } catch (error) {
    throw new VerifyUsageError(`${checkpointsPath(ledgerPath)} cannot be read (${reasonOf(error)})`)
  }
}

async function readText(path: string): Promise<string | null> {
  return await readFile(path, 'utf8').catch((error: unknown) => {
    if (isMissing(error)) return null
    throw new VerifyUsageError(`${path} cannot be read (${reasonOf(error)})`)
  })
}
