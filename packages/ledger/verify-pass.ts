import { isUtf8 } from 'node:buffer'
import { canonicalJson, isObject } from '@plat/core'
import type { PublicKey } from '@plat/keys'
import { Chain, type ChainProblem, type Damage, type Followed } from './chain.ts'
import type { Head, RawLine } from './format.ts'
import { type Anchor, isLogAnchor, logFault, readAnchor } from './proof/anchor.ts'
import { readCheckpointRecord } from './proof/checkpoint.ts'
import { leafHash, MerkleTree } from './proof/tree.ts'
import { judgeCheckpoint, type Trust } from './proof/trust.ts'
import { type Claim, ClaimTable } from './verify/claim-table.ts'

/** Results of a verification with their exit codes, which scripts depend on. */
export const EXIT_CODES = { valid: 0, usage: 2, broken: 3, torn: 4, unproven: 4, forked: 5, truncated: 6 } as const

export interface Finding {
  readonly verdict: Exclude<keyof typeof EXIT_CODES, 'usage'>
  readonly exitCode: number
  /** One or two sentences for people. */
  readonly message: string
  readonly ledgerId: string | null
  /** Number of valid records, from the first on. */
  readonly records: number
  readonly bytes: number
  /** Last valid record. */
  readonly head: Head | null
  readonly checkpoints: { readonly found: number; readonly signed: number }
  /** Anchored checkpoints, and those confirmed by a given key of the log. */
  readonly anchors: {
    readonly found: number
    readonly signed: number
    /** Last record covered by the latest of them, and the log; null without one. */
    readonly last: { readonly upTo: number; readonly url: string } | null
  }
  /** Number of records that no signature covers; null when no key was given. */
  readonly unproven: number | null
  /** Place of the first problem; null without one, or when records are missing at the end. */
  readonly place: (Pick<Damage, 'line' | 'seq' | 'offset' | 'what'> & { readonly path: string }) | null
}

/** A named file cannot be used: exit code 2. */
export class VerifyUsageError extends Error {}

/** Inputs of a pass. */
export interface PassParts {
  /** Null when no key for checkpoints was given. */
  readonly trust: Trust | null
  /** Keys of transparency logs; null when none was given. */
  readonly logKeys: readonly PublicKey[] | null
  readonly claims: readonly Claim[]
  readonly strict: boolean
  /** Records after the last signature are not a finding: the ledger may be in use. */
  readonly mayGrow?: boolean
}

/** State of one verification. */
export class Pass {
  readonly chain = new Chain(null)
  readonly trust: Trust | null
  readonly #logKeys: readonly PublicKey[] | null
  /** Number of records covered by the largest kept checkpoint; 0 without one. */
  readonly keptSize: number
  readonly strict: boolean
  readonly #mayGrow: boolean
  readonly #keptSource: string
  readonly tree: MerkleTree | null
  readonly #claims = new ClaimTable()
  /** Problem of the first broken checkpoint, and its record: verification ends there. */
  #fault: { readonly seq: number; readonly what: string } | null = null
  #found = 0
  #signed = 0
  readonly #anchors = { found: 0, signed: 0 }
  #lastAnchor: Finding['anchors']['last'] = null
  #provenUpTo = -1
  #lastCheckpoint = -1
  ledgerId: string | null = null
  bytes = 0

  constructor({ trust, logKeys, claims, strict, mayGrow = false }: PassParts) {
    this.trust = trust
    this.#logKeys = logKeys
    this.keptSize = claims.reduce((largest, { size }) => Math.max(largest, size), 0)
    this.#keptSource = claims.find(({ size }) => size === this.keptSize)?.source ?? KEPT
    this.strict = strict
    this.#mayGrow = mayGrow
    this.tree = strict || claims.some(({ head }) => head === null) ? new MerkleTree() : null
    for (const claim of claims) this.#claims.add(claim)
  }

  /** Collects a record of the first pass that may be a checkpoint or an anchor. */
  collect(seq: number, rec: Readonly<Record<string, unknown>>): void {
    if (rec.kind === 'checkpoint') this.#collectCheckpoint(seq, rec)
    else if (isLogAnchor(rec)) this.#collectAnchor(seq, rec)
  }

  #collectCheckpoint(seq: number, rec: Readonly<Record<string, unknown>>): void {
    this.#found++
    const checkpoint = readCheckpointRecord(rec)
    if (typeof checkpoint === 'string') {
      this.#refuse(seq, checkpoint)
    } else if (checkpoint.size > seq) {
      this.#refuse(seq, `the checkpoint covers ${checkpoint.size} records, but only ${seq} came before it`)
    } else {
      const signed = this.trust !== null && judgeCheckpoint(checkpoint, this.trust)
      const { ledgerId, size, head, root } = checkpoint
      if (typeof signed === 'string') this.#refuse(seq, signed)
      else this.#claims.add({ ledgerId, size, head, root, seq, signed, isAnchor: false, source: null })
    }
  }

  #collectAnchor(seq: number, rec: Readonly<Record<string, unknown>>): void {
    this.#anchors.found++
    const anchor = readAnchor(rec)
    const fault = typeof anchor === 'string' ? anchor : this.#anchorFault(anchor)
    if (fault !== null) this.#refuse(seq, fault)
    if (typeof anchor === 'string' || fault !== null) return
    const { covers, url } = anchor
    if (this.#logKeys !== null) this.#anchors.signed++
    this.#lastAnchor = { upTo: covers.size - 1, url }
    const { ledgerId, size, head, root } = covers
    this.#claims.add({ ledgerId, size, head, root, seq, signed: false, isAnchor: true, source: null })
  }

  #anchorFault(anchor: Anchor): string | null {
    const signed = this.trust === null ? true : judgeCheckpoint(anchor.covers, this.trust)
    if (typeof signed === 'string') return signed
    return this.#logKeys === null ? null : logFault(anchor, this.#logKeys)
  }

  #refuse(seq: number, what: string): void {
    if (this.#fault === null || seq < this.#fault.seq) this.#fault = { seq, what }
  }

  /** Processes a valid line of the chain. */
  see(buffer: Buffer, start: number, line: RawLine): ChainProblem | null {
    const bytes = buffer.subarray(start, start + line.length)
    if (line.seq === 0) this.ledgerId = ledgerIdOf(bytes)
    if (this.strict) {
      const what = strictFault(bytes)
      if (what !== null) return { kind: 'broken', what }
    }
    this.tree?.add(leafHash(bytes))
    this.bytes += line.length + 1
    if (this.#fault?.seq === line.seq) return { kind: 'broken', what: this.#fault.what }
    return this.#compare(line)
  }

  /** Compares the claims that end with this record with the actual records. */
  #compare(line: RawLine): ChainProblem | null {
    for (const { ledgerId, head, root, seq, signed, isAnchor, source: claimSource } of this.#claims.bySize(
      line.seq + 1,
    )) {
      const what = isAnchor ? 'anchor' : 'checkpoint'
      const source = seq === null ? (claimSource ?? KEPT) : `the ${what} in record ${seq}`
      if (ledgerId !== this.ledgerId) return { kind: 'forked', what: `${source} is of another ledger, ${ledgerId}` }
      const same =
        (head === null || head === line.hash) && (this.tree === null || root === null || root === this.tree.root())
      if (!same)
        return { kind: 'forked', what: `${source} covers another history: this record or one before it was replaced` }
      if (!signed) continue
      if (seq !== null) this.#signed++
      this.#provenUpTo = line.seq
      this.#lastCheckpoint = Math.max(this.#lastCheckpoint, seq ?? -1)
    }
    return null
  }

  damaged(path: string, damage: Damage): Finding {
    const { line, seq, offset, what, kind } = damage
    const message = `${kind} at record ${seq} (${path}, line ${line}, byte ${offset}): ${what}`
    return this.#finding(kind, message, { path, line, seq, offset, what })
  }

  /** A last line without LF that does not verify. Within a series of rotated files it is damage. */
  torn(path: string, found: Followed, last: boolean): Finding {
    const place = { path, line: found.lines + 1, seq: this.chain.next, offset: found.offset }
    const what = `${found.tail.length} bytes after the last complete line are no record`
    if (!last) return this.damaged(path, { ...place, kind: 'broken', what })
    if (this.#isTruncated()) return this.finish()
    const message =
      `valid up to ${this.#headText()}; the tail is torn (${path}, line ${place.line}, byte ${place.offset}): ${what}. ` +
      'A crash leaves such a tail; it was never acknowledged, and the next start keeps it aside.'
    return this.#finding('torn', message, { ...place, what })
  }

  finish(): Finding {
    const head = this.chain.head
    if (this.#isTruncated()) {
      const message = `truncated: ${this.#keptSource} covers ${this.keptSize} records, the ledger has ${this.#records}`
      return this.#finding('truncated', message, null)
    }
    if (head === null) return this.#finding('broken', 'the ledger is empty: it has no genesis record', null)
    const unproven = this.#unproven()
    if (unproven !== null && unproven > 0 && !this.#mayGrow) {
      const message = `valid up to ${this.#headText()}, but no signed checkpoint covers the last ${unproven} records`
      return this.#finding('unproven', message, null)
    }
    const proof = unproven === null ? '' : proofText(unproven)
    return this.#finding('valid', `valid: ${this.#records} records up to ${this.#headText()}${proof}`, null)
  }

  get #records(): number {
    return this.chain.next
  }

  #isTruncated(): boolean {
    return this.keptSize > this.#records
  }

  /** The last checkpoint's own record is covered by its signature. */
  #unproven(): number | null {
    if (this.trust === null) return null
    const last = this.#records - 1
    const proven = this.#lastCheckpoint === this.#provenUpTo + 1 ? this.#lastCheckpoint : this.#provenUpTo
    return last - proven
  }

  #headText(): string {
    const head = this.chain.head
    return head === null ? 'nothing' : `record ${head.seq}, hash ${head.hash}`
  }

  #finding(verdict: Finding['verdict'], message: string, place: Finding['place']): Finding {
    return {
      verdict,
      exitCode: EXIT_CODES[verdict],
      message,
      ledgerId: this.ledgerId,
      records: this.#records,
      bytes: this.bytes,
      head: this.chain.head,
      checkpoints: { found: this.#found, signed: this.#signed },
      anchors: { ...this.#anchors, last: this.#lastAnchor },
      unproven: this.#unproven(),
      place,
    }
  }
}

const KEPT = 'the kept checkpoint'

function proofText(unproven: number): string {
  return unproven === 0
    ? ', all covered by signed checkpoints or heads'
    : `; no signature covers the last ${unproven} records yet`
}

/** Checks a line beyond its hash: UTF-8, canonical JSON without duplicate members, a known version, a time. */
function strictFault(line: Buffer): string | null {
  if (!isUtf8(line)) return 'the line is not UTF-8'
  const text = line.toString()
  const value = parsed(text)
  if (!isObject(value) || !isObject(value.rec)) return 'the line is not JSON'
  if (typeof value.rec.kind !== 'string' || typeof value.rec.at !== 'string') return 'the record lacks "kind" or "at"'
  if (isInOrder(value) && JSON.stringify(value) === text && !text.includes(LONE_SURROGATE)) return null
  try {
    return canonicalJson(value) === text ? null : 'the line is not canonical JSON (RFC 8785)'
  } catch {
    return 'the line has no canonical form (RFC 8785)'
  }
}

/** Output of `JSON.stringify` for a lone surrogate; also occurs in a string that quotes this text. */
const LONE_SURROGATE = '\\ud'

/** Returns whether the members of all objects are in canonical order. Then canonical JSON equals the output of `JSON.stringify`. */
function isInOrder(value: unknown): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (Array.isArray(value)) return value.every(isInOrder)
  let before = ''
  for (const [name, member] of Object.entries(value)) {
    if (name < before || !isInOrder(member)) return false
    before = name
  }
  return true
}

function ledgerIdOf(line: Buffer): string | null {
  const value = parsed(line)
  const rec = isObject(value) ? value.rec : null
  return isObject(rec) && typeof rec.ledgerId === 'string' ? rec.ledgerId : null
}

/** Parses the line as JSON. Returns null when it is malformed. */
export function parsed(line: Buffer | string): unknown {
  try {
    return JSON.parse(line.toString())
  } catch {
    return null
  }
}
