import { whenReady } from '@plat/core'
import {
  type Body,
  type Call,
  type Denial,
  isDenial,
  type RedactedView,
  type RedactionScope,
  type Target,
} from '../../call/index.ts'
import { type Stage, stage, type Verdict } from '../../pipeline/stage.ts'
import type { HitCounter } from './metrics.ts'
import type { Profile } from './profile.ts'
import { type RedactedMessage, Redaction } from './redaction.ts'

/** Request texts of a plane. */
export interface RequestTexts {
  readonly where: RedactionScope
  /** Returns the body with other bytes. */
  rewritten(body: Body, bytes: Uint8Array): Body | Denial
  /** Texts of the body repeated in headers, which cannot be changed. */
  repeated(call: Pick<Call, 'wire'>): readonly string[]
}

export interface RedactOptions {
  readonly profileOf: (call: Call<'identity' | 'target'>) => Profile | null | Denial
  /** By kind of target; requests of other kinds are scanned as a whole and cannot be changed. */
  readonly texts: Readonly<Partial<Record<Target['kind'], RequestTexts>>>
  readonly count: HitCounter
}

const NOTHING = { redacted: null } as const

/** The stage `redact`: redacts or refuses arguments before any later stage sees them. */
export function createRedactStage({
  profileOf,
  texts,
  count,
}: RedactOptions): Stage<'redact', 'identity' | 'target', 'redacted'> {
  return stage({
    name: 'redact',
    needs: ['identity', 'target'],
    gives: ['redacted'],
    skipped: NOTHING,
    admit(call) {
      const profile = profileOf(call)
      if (profile === null) return NOTHING
      if (isDenial(profile)) return profile
      const { body } = call
      if (profile.arguments === null || body === null) return NOTHING
      const redaction = new Redaction(profile, profile.arguments, 'arguments', count(call))
      return redact({ call, body, redaction, texts: texts[call.facts.target.kind] })
    },
  })
}

interface Work {
  readonly call: Call<'identity' | 'target'>
  readonly body: Body
  readonly redaction: Redaction
  readonly texts: RequestTexts | undefined
}

function redact(work: Work): Verdict<'redacted'> | Promise<Verdict<'redacted'>> {
  const { call, body, redaction, texts = UNKNOWN } = work
  for (const text of texts.repeated(call)) {
    const denial = redaction.fixedText(text)
    if (denial !== null) return denial
  }
  return whenReady(redaction.judgeMessage(body.bytes, texts.where), verdictOf, body, texts)
}

function verdictOf(judged: RedactedMessage | Denial, body: Body, texts: RequestTexts): Verdict<'redacted'> {
  if (isDenial(judged)) return judged
  const { bytes, displayed, hits } = judged
  if (hits === 0) return { redacted: new View(body, 0) }
  const next = bytes === body.bytes ? body : texts.rewritten(body, bytes)
  const view = displayed === bytes ? next : texts.rewritten(body, displayed)
  if (isDenial(next)) return next
  if (isDenial(view)) return view
  const facts = { redacted: new View(view, hits) }
  return next === body ? facts : { kind: 'replace', body: next, facts }
}

/** Such a body cannot be changed. */
const UNKNOWN: RequestTexts = { where: { fixed: [[]] }, rewritten: (body) => body, repeated: () => [] }

/** The arguments with every hit replaced; text only on demand. */
class View implements RedactedView {
  readonly hits: number
  readonly #body: Body

  constructor(body: Body, hits: number) {
    this.#body = body
    this.hits = hits
  }

  get text(): string {
    const { args } = this.#body
    return args === null ? '' : Buffer.from(args.buffer, args.byteOffset, args.byteLength).toString('utf8')
  }
}
