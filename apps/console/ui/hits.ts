import { numberIn, textIn } from '../api/client.ts'
import { count } from './format.ts'
import type { Tone } from './parts.tsx'

/** Hits of data-loss prevention in one direction of a call, with one action. */
export interface Hits {
  readonly direction: 'arguments' | 'response'
  /** `redacted`, `found` or `refused`. */
  readonly state: string
  readonly tone: Tone
  /** `2 credit_card, 1 iban`. */
  readonly detectors: string
}

/** State of hits, by action. */
const STATES: Readonly<Record<string, Pick<Hits, 'state' | 'tone'>>> = {
  audit: { state: 'found', tone: 'info' },
  redact: { state: 'redacted', tone: 'warn' },
  deny: { state: 'refused', tone: 'bad' },
}

/** Returns the hits in a record, those in the arguments first. */
export function hitsOf(record: object): readonly Hits[] {
  const dlp: unknown = Reflect.get(record, 'dlp')
  if (!Array.isArray(dlp)) return []
  const groups = new Map<string, Omit<Hits, 'detectors'> & { readonly detectors: string[] }>()
  for (const direction of ['arguments', 'response'] as const) {
    for (const hit of dlp) {
      const known = STATES[textIn(hit, 'action') ?? '']
      if (textIn(hit, 'direction') !== direction || known === undefined) continue
      const key = `${direction} ${known.state}`
      const group = groups.get(key) ?? { direction, ...known, detectors: [] }
      groups.set(key, group)
      group.detectors.push(`${count(numberIn(hit, 'count') ?? 0)} ${textIn(hit, 'detector') ?? ''}`)
    }
  }
  return [...groups.values()].map((group) => ({ ...group, detectors: group.detectors.join(', ') }))
}
