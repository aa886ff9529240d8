import { Badge } from '../../ui/parts.tsx'

export function Action({ of }: { readonly of: string }) {
  return <Badge tone={of === 'allow' ? 'good' : of === 'deny' ? 'bad' : 'warn'}>{of.replace('_', ' ')}</Badge>
}
