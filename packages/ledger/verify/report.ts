import { firstOfSegment } from '../sequence/segment-entry.ts'
import type { SegmentDamagedError } from '../sequence/segment-list-error.ts'
import { type ArchivedRecords, EXIT_CODES, type Finding } from './finding.ts'
import type { PartClaims, PartResult } from './part.ts'

/** Totals of a verification: all parts for what was found, and those up to the first problem for what was verified. */
export interface Totals {
  ledgerId: string | null
  head: Finding['head']
  bytes: number
  signed: number
  provenUpTo: number
  lastCheckpoint: number
  checkpoints: number
  anchors: Finding['anchors']
  readonly archived: ArchivedRecords[]
}

export function noTotals(): Totals {
  return {
    ...{ ledgerId: null, head: null, bytes: 0, signed: 0, provenUpTo: -1, lastCheckpoint: -1, checkpoints: 0 },
    anchors: { found: 0, signed: 0, last: null },
    archived: [],
  }
}

/** Adds what was found in a part, which follows those added before. */
export function addClaims(totals: Totals, { checkpoints, anchors }: PartClaims): void {
  totals.checkpoints += checkpoints
  const { found, signed, last } = totals.anchors
  totals.anchors = { found: found + anchors.found, signed: signed + anchors.signed, last: anchors.last ?? last }
}

export function addResult(totals: Totals, { end, bytes, signed, provenUpTo, lastCheckpoint }: PartResult): void {
  totals.head = end.head
  totals.ledgerId = end.ledgerId
  totals.bytes += bytes
  totals.signed += signed
  totals.provenUpTo = Math.max(totals.provenUpTo, provenUpTo)
  totals.lastCheckpoint = Math.max(totals.lastCheckpoint, lastCheckpoint)
}

/** Adds records that left, which follow those added before. Adjacent files of one folder are one entry, which names the folder. */
export function addArchived(archived: ArchivedRecords[], { first, last, archive }: ArchivedRecords): void {
  const before = archived.at(-1)
  const place = before !== undefined && before.last + 1 === first ? commonPlace(before.archive, archive) : undefined
  if (before === undefined || place === undefined) archived.push({ first, last, archive })
  else archived[archived.length - 1] = { first: before.first, last, archive: place }
}

/** Returns the place of two archives, or their folder; undefined when they have none in common. */
export function commonPlace(one: string | null, other: string | null): string | null | undefined {
  if (one === other) return one
  if (one === null || other === null) return undefined
  const folder = one.slice(0, one.lastIndexOf('/') + 1)
  return folder !== '' && folder === other.slice(0, other.lastIndexOf('/') + 1) ? folder : undefined
}

/** Totals with the other inputs of a finding. */
export interface Judging {
  readonly totals: Totals
  /** A key for checkpoints was given. */
  readonly hasKey: boolean
  /** Records after the last signature are not a finding: the ledger may be in use. */
  readonly mayGrow: boolean
  /** Number of records that the largest checkpoint from elsewhere covers, and its source. */
  readonly largest: { readonly size: number; readonly source: string }
}

export function brokenFinding(judging: Judging, path: string, { problem }: PartResult): Finding | null {
  if (problem === null) return null
  const { kind, line, seq, offset, what } = problem
  const message = `${kind} at record ${seq} (${path}, line ${line}, byte ${offset}): ${what}`
  return findingOf(kind, message, judging, { path, line, seq, offset, what })
}

/** Finding about a file whose lines cannot be read: it states nothing about the other files. */
export function unreadableFinding({ path, message }: SegmentDamagedError): Finding {
  const largest = { size: 0, source: '' }
  const judging = { totals: noTotals(), hasKey: false, mayGrow: false, largest }
  const place = { path, line: 1, seq: firstOfSegment(path), offset: 0, what: message }
  return findingOf('broken', `broken: ${message}`, judging, place)
}

/** A last line without LF that does not verify. In a sealed file it is damage. */
export function tornFinding(judging: Judging, path: string, { torn }: PartResult, isLast: boolean): Finding | null {
  if (torn === null) return null
  const { line, offset, bytes } = torn
  const what = `${bytes} bytes after the last complete line are not a record`
  const place = { path, line, seq: recordsOf(judging.totals), offset, what }
  if (!isLast) {
    return findingOf(
      'broken',
      `broken at record ${place.seq} (${path}, line ${line}, byte ${offset}): ${what}`,
      judging,
      place,
    )
  }
  if (isTruncated(judging)) return wholeFinding(judging)
  const message =
    `valid up to ${headText(judging.totals)}; the tail is torn (${path}, line ${line}, byte ${offset}): ${what}. ` +
    'A crash leaves such a tail; it was never acknowledged, and the next start keeps it aside.'
  return findingOf('torn', message, judging, place)
}

/** Finding about a ledger whose lines are all valid. */
export function wholeFinding(judging: Judging): Finding {
  const { totals, largest, mayGrow } = judging
  const records = recordsOf(totals)
  if (isTruncated(judging)) {
    const message = `truncated: ${largest.source} covers ${largest.size} records, the ledger has ${records}`
    return findingOf('truncated', message, judging)
  }
  if (totals.head === null) return findingOf('broken', 'the ledger is empty: it has no genesis record', judging)
  const unproven = unprovenOf(judging)
  if (unproven !== null && unproven > 0 && !mayGrow) {
    const message = `valid up to ${headText(totals)}, but no signed checkpoint covers the last ${unproven} records`
    return findingOf('unproven', message, judging)
  }
  const proof = unproven === null ? '' : proofText(unproven)
  return findingOf('valid', `valid: ${records} records up to ${headText(totals)}${proof}`, judging)
}

function recordsOf({ head }: Totals): number {
  return head === null ? 0 : head.seq + 1
}

function isTruncated({ totals, largest }: Judging): boolean {
  return largest.size > recordsOf(totals)
}

/** The last checkpoint's own record is covered by its signature. */
function unprovenOf({ totals, hasKey }: Judging): number | null {
  if (!hasKey) return null
  const { lastCheckpoint, provenUpTo } = totals
  return recordsOf(totals) - 1 - (lastCheckpoint === provenUpTo + 1 ? lastCheckpoint : provenUpTo)
}

function headText({ head }: Totals): string {
  return head === null ? 'nothing' : `record ${head.seq}, hash ${head.hash}`
}

function findingOf(
  verdict: Finding['verdict'],
  message: string,
  judging: Judging,
  place: Finding['place'] = null,
): Finding {
  const { ledgerId, head, bytes, signed, checkpoints, anchors, archived } = judging.totals
  return {
    verdict,
    exitCode: EXIT_CODES[verdict],
    message,
    ledgerId,
    records: recordsOf(judging.totals),
    bytes,
    head,
    checkpoints: { found: checkpoints, signed },
    anchors,
    unproven: unprovenOf(judging),
    archived,
    place,
  }
}

function proofText(unproven: number): string {
  return unproven === 0
    ? ', all covered by signed checkpoints or heads'
    : `; no signature covers the last ${unproven} records yet`
}
