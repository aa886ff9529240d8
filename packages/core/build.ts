import pkg from './package.json' with { type: 'json' }

/** What `GET /version` answers and `plat_build_info` carries (docs/spec/broker-api.md, "Probes, version, metrics"). */
export interface BuildInfo {
  readonly component: string
  readonly version: string
  readonly commit: string
  readonly buildDate: string
  /** The runtime, `node26.10.0`: the contract's name for it is older than the runtime. */
  readonly goVersion: string
  /** `linux/x64`. */
  readonly platform: string
  /** Comma-separated build tags; empty for an ordinary build. */
  readonly tags: string
}

/**
 * The build of this process. An image sets `PLAT_BUILD_COMMIT`, `PLAT_BUILD_DATE` and `PLAT_BUILD_TAGS`; a checkout that
 * runs as it is says `unknown`.
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
