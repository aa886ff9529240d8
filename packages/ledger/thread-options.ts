import { getCompileCacheDir } from 'node:module'
import { dirname } from 'node:path'

/**
 * Returns the options of a thread that reads a ledger; it holds a chunk of one file, outside of the heap. Of the environment it gets the compile cache
 * of the process alone: without it a thread that runs TypeScript would load the compiler, 35 MiB and a quarter of a second.
 */
export function threadOptions(workerData: unknown) {
  const cache = getCompileCacheDir()
  return {
    workerData,
    // In MiB.
    resourceLimits: { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 4 },
    // Node adds the folder of its version.
    env: cache === undefined ? {} : { NODE_COMPILE_CACHE: dirname(cache) },
    execArgv: [],
  }
}
