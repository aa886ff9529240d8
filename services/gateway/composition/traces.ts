import { createEraser } from '../content/dlp/index.ts'
import { createOtel, type OtelFeature } from '../evidence/otel/index.ts'
import { createModelWords } from '../planes/model/index.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

/** Traces of calls: what is said in them is redacted by the configuration's profiles. */
export function startTraces(shared: Shared, { models }: Pick<Targets, 'models'>): OtelFeature {
  const { config, keep } = shared
  return keep(
    createOtel({
      ...shared,
      models: createModelWords(models.route),
      erase: createEraser(config.dlpProfiles, config.otel.genAI.contentDlpProfile),
    }),
  )
}
