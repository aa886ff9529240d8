import { isObject } from '@plat/core'
import { type AuditRecord, type Level, levelOf, numberOf, textOf, timeOf, titleOf } from './words.ts'

const SEVERITIES: Readonly<Record<Level, number>> = { information: 3, warning: 6, error: 8 }

/** Keys of the CEF dictionary, and the record members in them. */
const TEXTS = [
  ['act', 'action'],
  ['cat', 'op'],
  ['destinationServiceName', 'server'],
  ['dvchost', 'replica'],
  ['outcome', 'result'],
  ['reason', 'reason'],
  ['sntdom', 'namespace'],
  ['sourceServiceName', 'agent'],
  ['suser', 'user'],
] as const
const NUMBERS = [
  ['in', 'bytesDown'],
  ['out', 'bytesUp'],
] as const
/** Custom keys, each with a label. */
const CUSTOM_TEXTS = [
  ['cs2', 'session'],
  ['cs3', 'call'],
  ['cs4', 'policy'],
  ['cs5', 'rule'],
  ['cs6', 'tool'],
] as const
const CUSTOM_NUMBERS = [
  ['cn1', 'costMicros'],
  ['cn2', 'ms'],
] as const

/** ArcSight Common Event Format, version 0, with the hash as `cs1` and the record number as `externalId`. */
export function cef(record: AuditRecord): string {
  const kind = textOf(record, 'kind') ?? 'record'
  const head = ['CEF:0', 'plat', 'plat-gateway', '1', kind, titleOf(record), String(SEVERITIES[levelOf(record)])]
  const extension = extensionOf(record).map(([key, value]) => `${key}=${escapedValue(String(value))}`)
  return `${head.map(escapedHead).join('|')}|${extension.join(' ')}`
}

function extensionOf(record: AuditRecord): readonly (readonly [string, string | number])[] {
  const texts = TEXTS.map(([key, member]) => [key, textOf(record, member)] as const)
  const numbers = NUMBERS.map(([key, member]) => [key, numberOf(record, member)] as const)
  const customTexts = CUSTOM_TEXTS.flatMap(([key, member]) => labelled(key, member, textOf(record, member)))
  const customNumbers = CUSTOM_NUMBERS.flatMap(([key, member]) => labelled(key, member, numberOf(record, member)))
  return [
    ['rt', timeOf(record)] as const,
    ['externalId', record.seq] as const,
    ...labelled('cs1', 'hash', record.hash),
    ...texts,
    ...numbers,
    ...customTexts,
    ...customNumbers,
    ...labelled('cn3', 'dlpHits', dlpHitsOf(record)),
  ].flatMap(([key, value]) => (value === null ? [] : [[key, value] as const]))
}

/** Hits of data-loss prevention in the call, or null. */
function dlpHitsOf({ rec: { dlp } }: AuditRecord): number | null {
  if (!Array.isArray(dlp)) return null
  return dlp.reduce((sum: number, one: unknown) => {
    const count = isObject(one) ? one.count : undefined
    return sum + (Number.isSafeInteger(count) ? Number(count) : 0)
  }, 0)
}

function labelled(key: string, label: string, value: string | number | null) {
  return value === null ? [] : [[`${key}Label`, label] as const, [key, value] as const]
}

/** The head cannot contain line feeds. */
function escapedHead(text: string): string {
  return text.replace(/[\\|]/g, '\\$&').replace(/[\r\n]+/g, ' ')
}

function escapedValue(text: string): string {
  return text.replace(/[\\=]/g, '\\$&').replace(/\r/g, '\\r').replace(/\n/g, '\\n')
}
