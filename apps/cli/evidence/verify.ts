import { readFile } from 'node:fs/promises'
import { reasonOf } from '@plat/core'
import { EXIT_CODES, readKeys, UNSIGNED_CHECKPOINT, VerifyUsageError, verifyEvidence } from '@plat/ledger'
import type { Format, Output } from '../shared/output.ts'
import { printData } from '../shared/print.ts'

export interface EvidenceVerifyOptions {
  readonly file: string
  readonly key: string
  readonly logKey?: string
  readonly output: Format
}

/** Checks an evidence object with nothing but the keys: 0 proven, 3 changed, forged or signed by another key, 4 not signed for the given keys. */
export async function evidenceVerify(
  { file, key, logKey, output: format }: EvidenceVerifyOptions,
  output: Output,
): Promise<number> {
  try {
    const keys = await readKeys(key)
    const logKeys = logKey === undefined ? null : await readKeys(logKey)
    const found = await verifyEvidence(await bytesOf(file), { keys, hmacKey: null, logKeys })
    if (found === UNSIGNED_CHECKPOINT) {
      output.out(`unproven: ${found}`)
      return EXIT_CODES.unproven
    }
    if (typeof found === 'string') {
      output.out(`broken: ${found}`)
      return EXIT_CODES.broken
    }
    const { head, whole, anchored } = found
    const { id, ledgerId, about, from, to, records, at, by } = head
    if (format !== 'table') {
      printData(output, format, { verdict: 'valid', id, ledgerId, about, from, to, records, whole, anchored, at, by })
      return EXIT_CODES.valid
    }
    const names = Object.entries(about).map(([name, value]) => `${name} ${value}`)
    const which = whole ? `every record from ${from} to ${to}` : `of ${names.join(', ')}, between ${from} and ${to}`
    output.out(`valid: ${records} records of ledger ${ledgerId}, ${which}`)
    output.out(`sealed at ${at} for ${by}; ${ANCHORED[String(anchored)]}`)
    return EXIT_CODES.valid
  } catch (error) {
    if (!(error instanceof VerifyUsageError)) throw error
    output.err(`plat: ${error.message}`)
    return EXIT_CODES.usage
  }
}

const ANCHORED: Readonly<Record<string, string>> = {
  true: 'its checkpoint is in the transparency log',
  false: 'its checkpoint is anchored in no transparency log',
  null: 'its checkpoint is anchored in a transparency log, whose signature -log-key would check',
}

async function bytesOf(file: string): Promise<Buffer> {
  try {
    return await readFile(file)
  } catch (error) {
    throw new VerifyUsageError(`${file} cannot be read: ${reasonOf(error)}`)
  }
}
