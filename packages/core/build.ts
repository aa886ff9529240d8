import pkg from './package.json' with { type: 'json' }

/** Build information in `GET /version` and `plat_build_info` (docs/spec/broker-api.md, "Probes, version, metrics"). */
export interface BuildInfo {
  readonly component: string
  readonly version: string
  readonly commit: string
  readonly buildDate: string
  /** Runtime, such as `node26.10.0`; the contract's name predates the runtime. */
  readonly goVersion: string
  /** `linux/x64`. */
  readonly platform: string
  /** Comma-separated build tags; empty for an ordinary build. */
  readonly tags: string
}

/**
 * Returns the build of this process. Images set `PLAT_BUILD_COMMIT`, `PLAT_BUILD_DATE` and `PLAT_BUILD_TAGS`; a source checkout reports `unknown`.
 */
export function buildInfo(component: string): BuildInfo {
  const { PLAT_BUILD_COMMIT, PLAT_BUILD_DATE, PLAT_BUILD_TAGS } = process.env
  return {
    component,
    version: pkg.version,
    commit: PLAT_BUILD_COMMIT ?? 'unknown',
    buildDate: PLAT_BUILD_DATE ?? 'unknown',
    goVersion: `node${process.versions.node}`,
    platform: `${process.platform}/${process.arch}`,
    tags: PLAT_BUILD_TAGS ?? '',
  }
}
