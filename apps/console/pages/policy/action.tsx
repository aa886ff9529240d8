import { Badge } from '../../ui/parts.tsx'

/** An action of a policy. */
export function Action({ of }: { readonly of: string }) {
  return <Badge tone={of === 'allow' ? 'good' : of === 'deny' ? 'bad' : 'warn'}>{of.replace('_', ' ')}</Badge>
}
