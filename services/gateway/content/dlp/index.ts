import { type Call, type Denial, isDenial, type Redactor } from '../../call/index.ts'
import type { GatewayMetrics } from '../../metrics.ts'
import type { Stage } from '../../pipeline/stage.ts'
import { Bindings, type BindingsConfig } from './bindings.ts'
import { createHitCounter } from './metrics.ts'
import { Redaction } from './redaction.ts'
import { createRedactStage, type RedactOptions } from './stage.ts'

export { createEraser } from './eraser.ts'
export { createScreens } from './screens.ts'

export interface DlpOptions extends Pick<RedactOptions, 'texts'> {
  readonly config: BindingsConfig
  /** Returns the `dlpProfile` of a call's server or route, or null. */
  readonly ownProfile: (call: Call<'target'>) => string | null
  readonly metrics: GatewayMetrics
}

/** Data-loss prevention (docs/spec/gateway.md): profiles of detectors for texts sent by and to agents. */
export interface Dlp {
  readonly stage: Stage<'redact', 'identity' | 'target', 'redacted'>
  /** Returns the redactor of a call's response, or null if it is not scanned. */
  redactor(call: Call<'identity' | 'target'>): Redactor | Denial | null
}

export function createDlp({ config, ownProfile, texts, metrics }: DlpOptions): Dlp {
  const count = createHitCounter(metrics)
  const bindings = new Bindings(config)
  const profileOf = (call: Call<'identity' | 'target'>) =>
    bindings.profileOf(call.facts.target, ownProfile(call), call.facts.identity.namespace)
  return {
    stage: createRedactStage({ profileOf, texts, count }),
    redactor(call) {
      const profile = profileOf(call)
      if (profile === null || isDenial(profile)) return profile
      return profile.response === null ? null : new Redaction(profile, profile.response, 'response', count(call))
    },
  }
}
