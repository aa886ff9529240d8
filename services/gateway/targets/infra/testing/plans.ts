import type { TierConfig } from '../plan/tiers.ts'

/** Members of a change; the defaults are those of an unchanged instance. */
export interface PlanChange {
  readonly address?: string
  readonly previous_address?: string
  readonly type?: string
  readonly mode?: string
  readonly actions?: readonly string[]
  readonly importing?: { readonly id: string }
}

/** Builds one member of `resource_changes` in the format of `show -json`. */
export function change({ actions = ['no-op'], importing, ...members }: PlanChange): object {
  const { address = 'aws_instance.web', type = 'aws_instance', mode = 'managed', previous_address } = members
  return {
    address,
    ...(previous_address !== undefined && { previous_address }),
    mode,
    type,
    name: 'web',
    provider_name: 'registry.opentofu.org/hashicorp/aws',
    change: {
      actions,
      before: {},
      after: {},
      after_unknown: {},
      before_sensitive: {},
      after_sensitive: {},
      ...(importing !== undefined && { importing }),
    },
  }
}

/** Builds a plan of these changes in the format of `show -json`. */
export function planOf(changes: readonly PlanChange[], more: object = {}): object {
  return {
    format_version: '1.2',
    terraform_version: '1.10.5',
    planned_values: { root_module: {} },
    resource_changes: changes.map(change),
    prior_state: { format_version: '1.0', values: { root_module: {} } },
    configuration: { provider_config: {}, root_module: {} },
    timestamp: '2026-01-02T03:04:05Z',
    applyable: true,
    complete: true,
    errored: false,
    ...more,
  }
}

/** Defaults of `infra.tiers`. */
export const USUAL_TIERS: TierConfig = {
  sensitiveTypes: [],
  addSensitiveTypes: [],
  dataBearingTypes: [],
  addDataBearingTypes: [],
  protectedAddresses: [],
  addProtectedAddresses: [],
  maxResources: 50,
}
