import { type Manifest, tierOfAgent } from '@plat/resources'

type Tiers = ReadonlyMap<string, Manifest<'TrustTier'>>

export function tiersByName(tiers: readonly Manifest<'TrustTier'>[]): Tiers {
  return new Map(tiers.map((tier) => [tier.metadata.name, tier]))
}

/**
 * `model.providerTools` of an Agent as far as its TrustTier allows them (docs/spec/crds.md). A list names a tool by its word, which stands for
 * each of its versions, or by one version. A tier without a list, and one that is not declared, caps nothing.
 */
export function allowedTools({ spec }: Manifest<'Agent'>, tiers: Tiers): { providerTools?: string[] } {
  const requested = spec.model?.providerTools
  if (requested === undefined) return {}
  const dropped = new Set(droppedTools({ spec }, tiers))
  return { providerTools: requested.filter((tool) => !dropped.has(tool)) }
}

/** Tools that the TrustTier does not allow. */
export function droppedTools({ spec }: Pick<Manifest<'Agent'>, 'spec'>, tiers: Tiers): readonly string[] {
  const allowed = tiers.get(tierOfAgent(spec))?.spec.allowedProviderTools
  if (allowed === undefined) return []
  return (spec.model?.providerTools ?? []).filter(
    (tool) => !allowed.includes(tool) && !allowed.includes(tool.replace(/_\d{8}$/, '')),
  )
}
