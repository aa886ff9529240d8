import fc from 'fast-check'

/** A whole run draws the same cases every time, so that a change fails only for what it changed. `PLAT_TEST_SEED` draws others. */
const DEFAULT_SEED = 20_260_101

fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: Number(process.env.PLAT_TEST_SEED ?? DEFAULT_SEED) })

export * from 'fast-check'
// The module is imported by its default export everywhere.
export { default } from 'fast-check'
