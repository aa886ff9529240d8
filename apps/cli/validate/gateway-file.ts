import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Problem } from '@plat/config'
import { checkGatewayConfig, type GatewayConfig, typedConfig } from '@plat/gateway/config'
import { checkFiles } from '@plat/gateway/config-files'
import type { PlatFolder } from '../shared/home.ts'

export interface CheckedGateway {
  /** Defaults filled in; null: there are errors. */
  readonly config: GatewayConfig | null
  readonly errors: readonly Problem[]
  readonly warnings: readonly Problem[]
}

/**
 * Checks the keys that `plat up` would give the gateway, as the gateway does, and the prices that they name. Files in `.plat/` may be
 * missing, because `plat up` writes them. `rendered`: the folder with the files rendered from the resources.
 */
export function checkGatewayKeys(given: {
  readonly home: PlatFolder
  readonly keys: Readonly<Record<string, unknown>>
  readonly rendered: string
  readonly env: NodeJS.ProcessEnv
}): CheckedGateway {
  const { home, keys, rendered, env } = given
  const own = join(dirname(home.env), '/')
  const exists = (path: string) => path.startsWith(own) || existsSync(path)
  const { config, problems } = checkGatewayConfig(JSON.stringify(keys), { exists })
  const errors = problems.filter(({ severity }) => severity === 'error')
  const warnings = problems.filter(({ severity }) => severity === 'warning')
  if (errors.length > 0) return { config: null, errors, warnings }
  const typed = typedConfig(config)
  const models =
    typed.modelsFile === join(home.rendered, 'models.json') ? join(rendered, 'models.json') : typed.modelsFile
  const checked = { ...typed, modelsFile: models }
  return { config: checked, errors, warnings: [...warnings, ...checkFiles(checked, env)] }
}
