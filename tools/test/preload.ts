import { registerHooks } from 'node:module'
import { recordOwnCpuTime } from './cpu.ts'

recordOwnCpuTime()

/** Where property tests get `fast-check` from in a whole run: the same module, with the seed of the run. */
const SEEDED = new URL('./fast-check.ts', import.meta.url).href

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'fast-check' && context.parentURL !== SEEDED
      ? { url: SEEDED, shortCircuit: true }
      : next(specifier, context),
})
