import { createEraser } from '../content/dlp/index.ts'
import { createOtel, type OtelFeature } from '../evidence/otel/index.ts'
import { createModelWords } from '../planes/model/index.ts'
import type { Shared } from './shared.ts'
import type { Targets } from './targets.ts'

/** Traces of calls. Their content is redacted by the profiles of the configuration. */
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
