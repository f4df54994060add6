//! The macro with which an endpoint forwards methods to the endpoint that it wraps.
//!
//! It is a file of its own because it repeats each signature of [`Endpoint`](crate::Endpoint). Invariant: a forwarded
//! method only calls that of the inner endpoint.

/// In an `impl Endpoint`, defines the listed methods to call those of the endpoint in the given field.
///
/// An endpoint writes out the methods that it implements itself. The compiler reports methods that are neither written
/// nor listed.
///
/// ```ignore
/// impl Endpoint for Counted {
///     isles_transport::forward_to!(inner: here, places, limits, is_ready);
///     // the others
/// }
/// ```
#[macro_export]
macro_rules! forward_to {
    ($field:ident: $($method:ident),+ $(,)?) => {
        $($crate::forward_method!($field $method);)+
    };
}

/// One method of [`forward_to`].
#[doc(hidden)]
#[macro_export]
macro_rules! forward_method {
    ($field:ident here) => {
        fn here(&self) -> $crate::PlaceId {
            self.$field.here()
        }
    };
    ($field:ident places) => {
        fn places(&self) -> u32 {
            self.$field.places()
        }
    };
    ($field:ident limits) => {
        fn limits(&self) -> $crate::Limits {
            self.$field.limits()
        }
    };
    ($field:ident shares_processors) => {
        fn shares_processors(&self) -> bool {
            self.$field.shares_processors()
        }
    };
    ($field:ident progress) => {
        fn progress(
            &self,
            inbound: $crate::Inbound,
            deliver: &mut dyn ::core::ops::FnMut($crate::Arrival<'_>),
        ) -> usize {
            self.$field.progress(inbound, deliver)
        }
    };
    ($field:ident take_next) => {
        fn take_next(
            &self,
            from: $crate::PlaceId,
            class: $crate::Class,
            wants: &mut dyn ::core::ops::FnMut($crate::HandlerId, &[u8]) -> bool,
        ) -> $crate::Next {
            self.$field.take_next(from, class, wants)
        }
    };
    ($field:ident is_ready) => {
        fn is_ready(&self) -> bool {
            self.$field.is_ready()
        }
    };
    ($field:ident is_sending) => {
        fn is_sending(&self) -> bool {
            self.$field.is_sending()
        }
    };
    ($field:ident wait_with) => {
        fn wait_with(
            &self,
            timeout: ::core::option::Option<::core::time::Duration>,
            also: &dyn ::core::ops::Fn() -> bool,
        ) {
            self.$field.wait_with(timeout, also);
        }
    };
    ($field:ident unparker) => {
        fn unparker(&self) -> ::std::sync::Arc<dyn $crate::Unpark> {
            self.$field.unparker()
        }
    };
    ($field:ident is_dead) => {
        fn is_dead(&self, place: $crate::PlaceId) -> bool {
            self.$field.is_dead(place)
        }
    };
    ($field:ident declare_dead) => {
        fn declare_dead(&self, place: $crate::PlaceId) {
            self.$field.declare_dead(place);
        }
    };
    ($field:ident death) => {
        fn death(&self, place: $crate::PlaceId) -> ::core::option::Option<$crate::Death> {
            self.$field.death(place)
        }
    };
    ($field:ident leave) => {
        fn leave(&self) {
            self.$field.leave();
        }
    };
    ($field:ident other_hosts) => {
        fn other_hosts(&self) -> ::core::option::Option<&dyn $crate::OtherHosts> {
            self.$field.other_hosts()
        }
    };
    ($field:ident work_model) => {
        fn work_model(&self) -> ::core::option::Option<&dyn $crate::WorkModel> {
            self.$field.work_model()
        }
    };
    ($field:ident span_sink) => {
        fn span_sink(&self) -> ::core::option::Option<&dyn $crate::SpanSink> {
            self.$field.span_sink()
        }
    };
    ($field:ident shared_memory) => {
        fn shared_memory(&self) -> ::core::option::Option<&dyn $crate::MappedMemory> {
            self.$field.shared_memory()
        }
    };
    ($field:ident lending) => {
        fn lending(&self) -> ::core::option::Option<&dyn $crate::Lending> {
            self.$field.lending()
        }
    };
}
