import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { readSecret } from '@plat/config'
import { type ArchivedRecords, EXIT_CODES, type Finding, hmacKeyOf, VerifyUsageError, verifyLedger } from '@plat/ledger'
import type { LedgerSource } from '../shared/ledger-source.ts'
import { type Format, type Output, plain } from '../shared/output.ts'
import { printData, printObject } from '../shared/print.ts'
import { type ProgressScreen, progressBar } from '../shared/progress.ts'
import { withFetchedLedger } from './fetched.ts'

export type AuditVerifyOptions = LedgerSource & {
  /** Public keys of the checkpoints: PEM, JWK or JWK set. */
  readonly key?: string
  /** A checkpoint that was kept elsewhere. */
  readonly checkpoint?: string
  /** Public keys of the transparency log: PEM, JWK or JWK set. */
  readonly logKey?: string
  readonly strict?: boolean
  readonly output: Format
}

/** Environment of a verification. */
export interface VerifyAround {
  readonly screen?: ProgressScreen
  /** Where the key of HMAC checkpoints is read from. */
  readonly env?: NodeJS.ProcessEnv
}

/** A ledger that takes longer than a blink, in bytes. */
const LONG_LEDGER_BYTES = 64 * 1024 * 1024

const BESIDE =
  'Checked with the files beside the ledger (.head, .checkpoints, .jwks) that exist; write access to the folder allows replacing them. ' +
  'Use -key and -checkpoint for copies that are stored elsewhere.'

const FETCHED =
  'Checked with checkpoints and keys of the gateway itself. Use -key and -checkpoint for copies that are stored elsewhere.'

/** What to do about each finding. */
const ADVICE: Readonly<Record<Finding['verdict'], string>> = {
  valid: '',
  broken:
    'Keep the file unchanged. Compare it with a copy; `plat audit repair` lets the gateway start and keeps the damaged part.',
  torn: 'Nothing that was acknowledged is missing. The next start of the gateway keeps the torn bytes aside and records it.',
  unproven:
    'The chain is complete, but anyone with write access to the file could have added these records. The next checkpoint covers them.',
  forked: 'There are two histories. Keep both files and find out who could write to the ledger.',
  truncated: 'Durable records are missing. Look for them in backups and sinks.',
}

/** What to do about damage in a sealed segment, which repair does not change. */
const SEALED_ADVICE =
  'Keep the file, and restore this sealed segment from a copy with `plat audit repair <ledger> -from <copy>`: the gateway serves calls meanwhile.'

/** Verifies a ledger and prints the result. Returns the exit code of the finding (0, 3, 4, 5, 6; 2 for unusable files). */
export async function auditVerify(
  options: AuditVerifyOptions,
  output: Output,
  { screen = process.stderr, env = process.env }: VerifyAround = {},
): Promise<number> {
  if ('env' in options) {
    const { env: gateway, ...rest } = options
    return withFetchedLedger(gateway, (path) => verifyFile({ ...rest, path }, FETCHED, output, { screen, env }))
  }
  const ledgers = await ledgersIn(options.path)
  if (ledgers === null) return verifyFile(options, BESIDE, output, { screen, env })
  let worst = 0
  for (const { name, path } of ledgers) {
    if (options.output === 'table') output.out(`ledger ${name}:`)
    worst = Math.max(worst, await verifyFile({ ...options, path }, BESIDE, output, { screen, env }))
  }
  return worst
}

/** Ledgers of tenants or replicas in a folder, by name; null: the path is not of a folder, or the folder has none. */
async function ledgersIn(folder: string): Promise<readonly { readonly name: string; readonly path: string }[] | null> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const found = entries
    .filter((entry) => entry.isDirectory() && existsSync(join(folder, entry.name, 'audit.jsonl')))
    .map(({ name }) => ({ name, path: join(folder, name, 'audit.jsonl') }))
  return found.length === 0 ? null : found.toSorted((one, other) => (one.name < other.name ? -1 : 1))
}

async function verifyFile(
  options: Extract<AuditVerifyOptions, { readonly path: string }>,
  advice: string,
  output: Output,
  { screen, env }: Required<VerifyAround>,
): Promise<number> {
  const { path, key, checkpoint, logKey, strict = false } = options
  const bar = progressBar(screen, { least: LONG_LEDGER_BYTES, isBytes: true })
  try {
    const files = {
      ...(key !== undefined && { key }),
      ...(checkpoint !== undefined && { checkpoint }),
      ...(logKey !== undefined && { logKey }),
    }
    const hmacKey = hmacKeyOf(readSecret(env, 'PLAT_AUDIT_HMAC_KEY'))
    const found = await verifyLedger(path, { ...files, hmacKey, strict, beside: true, onProgress: bar.show })
    bar.clear()
    print(found, path, options.output, output)
    if (options.output === 'table' && key === undefined && found.verdict === 'valid') output.out(advice)
    return found.exitCode
  } catch (error) {
    bar.clear()
    if (!(error instanceof VerifyUsageError)) throw error
    output.err(`plat: ${error.message}`)
    return EXIT_CODES.usage
  }
}

function print(found: Finding, path: string, format: Format, output: Output): void {
  const { verdict, exitCode, message, ledgerId, records, bytes, head, checkpoints, anchors, archived, place } = found
  if (format === 'table') {
    output.out(message)
    const signed =
      checkpoints.found > 0 ? `, ${checkpoints.found} checkpoints, ${checkpoints.signed} with a verified signature` : ''
    if (ledgerId !== null || records > 0)
      output.out(`ledger ${ledgerId ?? 'unknown'}: ${records} good records, ${bytes} bytes${signed}`)
    for (const one of archived.slice(0, ARCHIVED_LINES)) output.out(archivedText(one))
    if (archived.length > ARCHIVED_LINES) output.out(`${archived.length - ARCHIVED_LINES} more: -o json lists them`)
    if (anchors.last !== null) output.out(anchorsText(anchors))
    const advice = place !== null && place.path !== path ? SEALED_ADVICE : ADVICE[verdict]
    if (advice !== '') output.out(advice)
    return
  }
  if (format === 'json') {
    const { unproven } = found
    const about = { verdict, exitCode, message, ledgerId, records, bytes, head }
    printData(output, 'json', { ...about, checkpoints, anchors, unproven, archived, place })
    return
  }
  const flat = {
    verdict,
    exitCode,
    message,
    ledgerId: ledgerId ?? '',
    records,
    bytes,
    seq: head?.seq ?? -1,
    hash: head?.hash ?? '',
  }
  printObject(
    output,
    format,
    place === null ? flat : { ...flat, line: place.line, offset: place.offset, what: place.what },
  )
}

/** Archived segments that the table lists. */
const ARCHIVED_LINES = 10

function archivedText({ first, last, archive }: ArchivedRecords): string {
  const where = archive === null ? 'were deleted' : `are archived at ${plain(archive)}`
  return `records ${first} to ${last} ${where}; the segment record after them and its signatures still cover them`
}

function anchorsText({ found, signed, last }: Finding['anchors']): string {
  const judged = signed === found ? 'as its key says' : '--log-key checks its signature'
  return `anchored in ${last?.url} up to record ${last?.upTo} (anchors: ${found}; ${judged})`
}
